//! Which kernel an address in a dispatch packet is. Code objects come and go, and a later one may lie where an earlier
//! one lay, while dispatches of the earlier one wait to be recorded: each address has its kernels in the order in which
//! they were loaded, and a dispatch carries the epoch in which it was written.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the executables that were frozen.
static EPOCH: AtomicU64 = AtomicU64::new(0);

/// The epoch for a packet that is written now.
pub fn epoch() -> u64 {
    EPOCH.load(Ordering::Relaxed)
}

/// Registers, from a kernel's descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Registers {
    pub vgprs: u16,
    pub accum_vgprs: u16,
    pub sgprs: u16,
}

/// A kernel symbol of a frozen executable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kernel {
    /// Without the `.kd` of the descriptor's symbol.
    pub name: String,
    /// Index of the agent.
    pub agent: u32,
    /// Bytes.
    pub kernarg: u32,
    /// Bytes a workgroup.
    pub lds: u32,
    /// Bytes a work-item.
    pub scratch: u32,
    pub registers: Option<Registers>,
}

#[derive(Default)]
pub struct Kernels {
    /// Epoch and id, in ascending order.
    at: HashMap<u64, Vec<(u64, u32)>>,
    /// A code object that is loaded again brings no new kernels.
    ids: HashMap<Kernel, u32>,
    registers: Vec<Option<Registers>>,
}

impl Kernels {
    /// Takes the kernels of an executable that was frozen, with their addresses, before the first of them can be
    /// dispatched. `new` is told of those that were not known.
    pub fn add(
        &mut self,
        kernels: impl IntoIterator<Item = (u64, Kernel)>,
        mut new: impl FnMut(u32, u64, &Kernel),
    ) {
        let epoch = EPOCH.load(Ordering::Relaxed) + 1;
        for (object, kernel) in kernels {
            let registers = kernel.registers;
            let next = self.registers.len() as u32 + 1;
            let id = *self.ids.entry(kernel).or_insert_with_key(|kernel| {
                new(next, object, kernel);
                next
            });
            if id == next {
                self.registers.push(registers);
            }
            let here = self.at.entry(object).or_default();
            if here.last().is_none_or(|&(_, last)| last != id) {
                here.push((epoch, id));
            }
        }
        EPOCH.store(epoch, Ordering::Release);
    }

    /// The kernel that lay at `object` in `epoch`; 0 for none.
    pub fn find(&self, object: u64, epoch: u64) -> u32 {
        let here = self.at.get(&object).map(Vec::as_slice).unwrap_or_default();
        let newest = here.iter().rev().find(|&&(since, _)| since <= epoch);
        newest.map_or(0, |&(_, id)| id)
    }

    /// None was loaded.
    pub fn is_empty(&self) -> bool {
        self.registers.is_empty()
    }

    pub fn registers(&self, id: u32) -> Option<Registers> {
        let index = (id as usize).checked_sub(1)?;
        *self.registers.get(index)?
    }
}

/// The registers in a kernel descriptor (LLVM's AMDGPU usage guide, "Kernel Descriptor" and "compute_pgm_rsrc1",
/// "compute_pgm_rsrc3"), as rocprofv3 counts them. `None` for targets that the guide did not know.
pub fn registers(descriptor: &[u8; 64], target: &str) -> Option<Registers> {
    let word = |at: usize| {
        u32::from_le_bytes([
            descriptor[at],
            descriptor[at + 1],
            descriptor[at + 2],
            descriptor[at + 3],
        ])
    };
    let (rsrc3, rsrc1) = (word(44), word(48));
    let properties = u16::from_le_bytes([descriptor[56], descriptor[57]]);
    // The stepping is the last digit, the minor version the one before it, both hexadecimal.
    let digits = target.strip_prefix("gfx")?.split(':').next()?;
    let major: u32 = digits.get(..digits.len().checked_sub(2)?)?.parse().ok()?;
    let granules = (rsrc1 & 0x3f) as u16 + 1;
    let scalar = ((rsrc1 >> 6) & 0xf) as u16;
    let wave32 = properties & 1 << 10 != 0;
    // gfx90a and gfx94x, gfx95x: one file of registers, of which the accumulation registers are the upper part.
    let unified = major == 9
        && matches!(
            &digits[digits.len() - 2..],
            "0a" | "40" | "41" | "42" | "50"
        );
    let (vgprs, accum_vgprs) = if unified {
        let first_accum = ((rsrc3 & 0x3f) as u16 + 1) * 4;
        let all = granules * 8;
        (first_accum.min(all), all.saturating_sub(first_accum))
    } else if major == 9 && &digits[digits.len() - 2..] == "08" {
        // gfx908: two files of the same size.
        (granules * 4, granules * 4)
    } else {
        let granule = match major {
            6..=9 => 4,
            12 if digits.starts_with("125") => 16,
            10..=12 if wave32 => 8,
            10..=12 => 4,
            _ => return None,
        };
        (granules * granule, 0)
    };
    let sgprs = match major {
        6..=8 => (scalar + 1) * 8,
        9 => (scalar / 2 + 1) * 16,
        // Each wave has all.
        _ => 128,
    };
    Some(Registers {
        vgprs,
        accum_vgprs,
        sgprs,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(name: &str) -> Kernel {
        Kernel {
            name: name.into(),
            agent: 1,
            kernarg: 8,
            lds: 0,
            scratch: 0,
            registers: None,
        }
    }

    /// A kernel's id by the epoch of its dispatch, when another code object was loaded at its address.
    #[test]
    fn an_address_means_what_lay_there_when_the_packet_was_written() {
        let mut kernels = Kernels::default();
        let mut new = Vec::new();
        let mut add = |kernels: &mut Kernels, name: &str| {
            kernels.add([(0x100, kernel(name))], |id, _, kernel| {
                new.push((id, kernel.name.clone()))
            });
            EPOCH.load(Ordering::Relaxed)
        };
        let first = add(&mut kernels, "a");
        let again = add(&mut kernels, "a");
        let second = add(&mut kernels, "b");
        let third = add(&mut kernels, "a");
        let id = |epoch| kernels.find(0x100, epoch);
        assert_eq!([first, again, second, third].map(id), [1, 1, 2, 1]);
        assert_eq!(kernels.find(0x100, first - 1), 0);
        assert_eq!(kernels.find(0x200, third), 0);
        assert_eq!(new, [(1, "a".into()), (2, "b".into())]);
    }
}
