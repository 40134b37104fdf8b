//! Reads a profile: its kind, its architecture, and whether it is valid.

use crate::{names, paths};
use anyhow::{Context, Result, anyhow, bail, ensure};
use profraw::format::{BYTE_COVERAGE, VARIANT_MASK};
use profraw::{Error, Layout, kind};
use regex::Regex;
use std::fmt;
use std::io::Read;
use std::path::Path;
use std::sync::LazyLock;

/// Where the profiled code ran.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Arch {
    /// A GPU, as LLVM's and devprof's runtimes put it into the file's name: `gfx1100`, `sm_90`.
    Gpu(String),
    Host,
    /// The profile does not contain this information, for example because it was merged.
    Unknown,
}

/// The format of a file, with its version without variant flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Raw(u64),
    Indexed(u64),
    Text,
}

/// A file that was opened.
#[derive(Debug)]
pub struct Profile {
    pub kind: Kind,
    /// The architecture in its name. A raw profile without one is of the host, unless its records are of a GPU.
    pub named: Option<Arch>,
    /// All bytes of a raw profile; the first [`HEAD`] ones of others, which llvm-profdata reads.
    pub bytes: Vec<u8>,
}

/// Number of bytes to read before the format of a file is known. Most profiles are shorter.
const HEAD: u64 = 1 << 16;

/// Opens a profile and determines its format.
///
/// # Errors
/// The file cannot be read, or is not a profile.
pub fn open(path: &Path) -> Result<Profile> {
    let (mut file, size) = paths::open(path)?;
    let mut bytes = Vec::with_capacity(size.min(HEAD) as usize);
    (&mut file)
        .take(HEAD)
        .read_to_end(&mut bytes)
        .context("cannot read it")?;
    let kind = kind_of(&bytes)?;
    if let Kind::Raw(_) = kind
        && bytes.len() as u64 == HEAD
    {
        paths::read_profiles(&mut file, size, &mut bytes)?;
    }
    Ok(Profile {
        kind,
        named: named(path),
        bytes,
    })
}

/// Whether a binary profile says only which code ran. `false` if it cannot be read.
pub fn only_ran(path: &Path) -> bool {
    let mut head = [0; 16];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && has_byte_coverage(&head)
}

/// Whether a profile that begins with `head` has byte coverage. Text profiles have none.
fn has_byte_coverage(head: &[u8]) -> bool {
    let version = match kind::Kind::of(head) {
        Some(kind::Kind::Raw { version, .. } | kind::Kind::Indexed { version }) => version,
        None => None,
    };
    version.is_some_and(|version| version & BYTE_COVERAGE != 0)
}

impl Profile {
    /// Whether it says only which code ran.
    pub fn only_ran(&self) -> bool {
        has_byte_coverage(&self.bytes)
    }
}

/// Whether a file begins as a raw or indexed profile does.
pub fn is_profile(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(64).read_to_end(&mut head));
    path.is_file() && read.is_ok() && kind::Kind::of(&head).is_some()
}

fn kind_of(head: &[u8]) -> Result<Kind> {
    ensure!(
        !head.is_empty(),
        "empty file: the program ended before writing it"
    );
    match kind::Kind::of(head) {
        Some(kind::Kind::Raw {
            bits: 64,
            big_endian: false,
            version,
        }) => Ok(Kind::Raw(raw_version(version)?)),
        Some(kind::Kind::Raw { .. }) => bail!(
            "a raw profile of a 32-bit or big-endian target; devprof reads 64-bit little-endian ones"
        ),
        Some(kind::Kind::Indexed { version }) => Ok(Kind::Indexed(raw_version(version)?)),
        None if kind::is_text(head) => Ok(Kind::Text),
        None => bail!(
            "not a profile: it begins with the bytes {:02x?}",
            &head[..head.len().min(8)]
        ),
    }
}

fn raw_version(version: Option<u64>) -> Result<u64> {
    let version = version.context("the file ends inside its header")?;
    Ok(version & !VARIANT_MASK)
}

/// The architecture in a file's name: `gfx1100.default.profraw`, `gfx1100.1.default.profraw`, `sm_90.default.profraw`; also
/// after a prefix (`run7-gfx90a.profraw`).
pub fn named(path: &Path) -> Option<Arch> {
    static ARCHS: LazyLock<[Regex; 2]> = LazyLock::new(|| {
        let cuda = "sm_[0-9]{2,3}[af]?";
        let amd = "gfx[0-9a-f]*-(?:4-)?generic|gfx[0-9a-f]{3,4}";
        [cuda, amd].map(|arch| {
            let between = format!("(?:^|[._-])({arch})(?:[._-]|$)");
            Regex::new(&between).expect("a valid regular expression")
        })
    });
    let name = path.file_name()?.to_str()?;
    let found = ARCHS.iter().find_map(|arch| arch.captures(name))?;
    Some(Arch::Gpu(found[1].to_owned()))
}

/// The architecture of a merged profile without the name of a GPU in its name: it is of the host if it is called
/// `NAME.host.profdata`, as `devprof merge` calls it.
pub fn of_merged(path: &Path) -> Arch {
    let stem = path.file_stem().unwrap_or_default().as_encoded_bytes();
    if stem.ends_with(b".host") {
        Arch::Host
    } else {
        Arch::Unknown
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Arch::Gpu(name) => name,
            Arch::Host => "host",
            Arch::Unknown => "unknown",
        })
    }
}

/// A function's name (MD5) and hash.
pub type Function = (u64, u64);

/// The contents of a valid file of raw profiles.
#[derive(Debug, Default)]
pub struct Checked {
    pub functions: Vec<Function>,
    /// A record is of a function that ran on a GPU.
    pub is_device: bool,
}

/// Validates all raw profiles in a file, of version 10 or 11. `version` is the version of the first one.
///
/// # Errors
/// The damage, and its offset.
pub fn check(bytes: &[u8], version: u64) -> Result<Checked> {
    let mut checked = Checked::default();
    let mut base = 0;
    while base < bytes.len() {
        let end = checked.add(&bytes[base..], base, version);
        base += match base {
            0 => end?,
            _ => end.with_context(|| format!("profile at byte {base:#x}"))?,
        };
    }
    Ok(checked)
}

impl Checked {
    /// Validates the raw profile at the beginning of `bytes`, which are at byte `base` of the file. Returns its size.
    fn add(&mut self, bytes: &[u8], base: usize, version: u64) -> Result<usize> {
        if let Ok(Kind::Raw(own)) = kind_of(bytes) {
            ensure!(
                own == version,
                "raw version {own}, but the file begins with version {version}: no llvm-profdata reads both"
            );
        }
        let layout = Layout::read(bytes)?;
        for ranges in profraw::counter_ranges(bytes, &layout) {
            let ranges = ranges.map_err(|error| match error {
                Error::Record { record, .. } | Error::Claimed { record, .. } => {
                    let start = base + layout.data.start + record * layout.format().record;
                    anyhow!("{error}; the record begins at byte {start:#x}")
                }
                _ => error.into(),
            })?;
            self.functions.push((ranges.name, ranges.hash));
        }
        for text in names::texts(&bytes[layout.names.clone()]) {
            text.map_err(|error| {
                anyhow!("names at byte {:#x}: {error}", base + layout.names.start)
            })?;
        }
        let mut records = layout.format().records(&bytes[layout.data.clone()]);
        self.is_device |= records.any(|record| record.offload_device_wave_size.get() != 0);
        Ok(profraw::end(bytes, &layout)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gpu_is_in_the_files_name() {
        let gpu = |name: &str| named(Path::new(name)).map(|arch| arch.to_string());
        for (name, found) in [
            ("gfx1100.default.profraw", "gfx1100"),
            ("dir.gfx9/gfx90a.1.x.profraw", "gfx90a"),
            ("gfx942.hsa0.default.profraw", "gfx942"),
            ("gfx11-generic.x", "gfx11-generic"),
            ("gfx9-4-generic.x", "gfx9-4-generic"),
            ("rank3_gfx1201", "gfx1201"),
            ("merged.gfx1030.profdata", "gfx1030"),
            ("sm_90.default.profraw", "sm_90"),
            ("sm_90.1.default.profraw", "sm_90"),
            ("run7-sm_120a.profraw", "sm_120a"),
        ] {
            assert_eq!(gpu(name).as_deref(), Some(found), "{name}");
        }
        for name in [
            "default.profraw",
            "mygfx1100.x",
            "gfx.x",
            "gfx11.x",
            "gfx11000.x",
            "gfx90A.x",
            "gfx1100/x",
            "prism_90.x",
            "sm_9.x",
            "sm_90b.x",
            "sm_9000.x",
            "sm_.x",
        ] {
            assert_eq!(gpu(name), None, "{name}");
        }
    }
}
