//! Limits on what reading a file may cost. They hold for all parts of the file together: a small file can have any number
//! of parts, which share their bytes or are compressed.

use std::cell::Cell;

/// A sum that must not exceed a maximum.
#[derive(Debug)]
pub struct Limit {
    max: Cell<u64>,
    used: Cell<u64>,
    unit: u64,
    /// For the message, after the number: `MiB of names`.
    what: &'static str,
}

const MIB: u64 = 1 << 20;

impl Limit {
    /// `what` is the plural.
    pub fn of_count(max: u64, what: &'static str) -> Limit {
        let (max, used, unit) = (Cell::new(max), Cell::new(0), 1);
        Limit {
            max,
            used,
            unit,
            what,
        }
    }

    /// `what` begins with `MiB of`. `max` is in bytes.
    pub fn of_size(max: u64, what: &'static str) -> Limit {
        Limit {
            unit: MIB,
            ..Limit::of_count(max.next_multiple_of(MIB), what)
        }
    }

    /// A limit on bytes that parts of a file of `size` bytes can share, but not many of them: suffixes of names.
    pub fn of_shared(size: u64, what: &'static str) -> Limit {
        Limit::of_size(size.clamp(MIB / 4, u64::MAX / 8) * 4, what)
    }

    /// How much is left.
    pub fn left(&self) -> u64 {
        self.max.get() - self.used.get()
    }

    /// Uses a part.
    ///
    /// # Errors
    /// More than is left. The message names the limit.
    pub fn take(&self, amount: u64) -> Result<(), String> {
        if amount > self.left() {
            return Err(self.to_string());
        }
        self.used.set(self.used.get() + amount);
        Ok(())
    }
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "more than {} {}", self.max.get() / self.unit, self.what)
    }
}

/// The limits of a walk.
#[derive(Debug)]
pub struct Budget {
    /// Bytes that are unpacked, at all levels of nesting.
    pub unpacked: Limit,
    /// Size in memory of everything that is found ([`crate::Found::weight`]). Real libraries have a few MiB of names.
    pub found: Limit,
    /// Bytes of the files that thin archives name.
    pub members: Limit,
}

impl Budget {
    /// Limit on the depth of nested containers.
    pub const DEPTH: usize = 8;
    /// Limit on the depth of nested compressed containers, each of which needs memory: up to 200 MiB for its window and the
    /// bytes that are kept.
    pub const UNPACKED_DEPTH: usize = 2;
    /// Limit on the ratio of the bytes that are unpacked to the size of the file. Code objects of many similar GPUs reach 30.
    const RATIO: u64 = 100;
    /// In bytes. So much is unpacked at any ratio: counters are zeros.
    const SMALL: u64 = 512 * MIB;

    /// For a file of `size` bytes.
    pub fn new(size: u64) -> Budget {
        let unpacked = size.saturating_mul(Self::RATIO).max(Self::SMALL);
        Budget {
            unpacked: Limit::of_size(unpacked.min(u64::MAX - MIB), "MiB of unpacked data"),
            found: Limit::of_size(256 * MIB, "MiB of names"),
            members: Limit::of_size(16384 * MIB, "MiB of members of thin archives"),
        }
    }

    /// A file of `size` bytes belongs to the walk, too.
    pub fn add_file(&self, size: u64) {
        let max = &self.unpacked.max;
        max.set(max.get().max(Budget::new(size).unpacked.max.get()));
    }
}
