//! What a file is, of what, and whether all of it is there.

use crate::llvm::indexed_version;
use crate::names;
use profraw::format::{COUNTER, Format, MAGIC, VARIANT_MASK};
use profraw::{Error, Layout};
use std::fmt;
use std::fs::OpenOptions;
use std::io::Read;
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// What counted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Arch {
    /// A GPU, as LLVM's and devprof's runtimes put it into the file's name: `gfx1100`.
    Gpu(String),
    Host,
    /// A profile that does not tell, such as one that was merged.
    Unknown,
}

/// What a file holds, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Its raw version.
    Raw(u64),
    /// Its indexed version.
    Indexed(u64),
    Text,
}

/// A file that was opened.
#[derive(Debug)]
pub struct Profile {
    pub kind: Kind,
    /// By its name; a raw profile without one in its name is of the host, or of a GPU where its records say so.
    pub named: Option<Arch>,
    /// All of a raw profile. Of others llvm-profdata is the reader.
    pub bytes: Vec<u8>,
}

/// First word of a raw profile of a 32-bit target.
const MAGIC_32: u64 = 0xff6c_7072_6f66_5281;

/// Bytes that are read before it is known what a file is; most profiles are shorter.
const HEAD: u64 = 1 << 16;

/// # Errors
/// The file cannot be read, or is no profile.
pub fn open(path: &Path) -> Result<Profile, String> {
    // Opening a pipe would wait for a writer.
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(libc::O_NONBLOCK);
    let unopened = |e| format!("cannot open it: {e}");
    let mut file = options.open(path).map_err(unopened)?;
    let data = file.metadata().map_err(unopened)?;
    if !data.is_file() {
        return Err("not a regular file".to_owned());
    }
    let unread = |e| format!("cannot read it: {e}");
    let mut bytes = Vec::with_capacity(data.len().min(HEAD) as usize);
    (&mut file)
        .take(HEAD)
        .read_to_end(&mut bytes)
        .map_err(unread)?;
    let kind = kind(&bytes)?;
    if let Kind::Raw(_) = kind
        && bytes.len() as u64 == HEAD
    {
        let rest = data.len().saturating_sub(HEAD);
        bytes.reserve_exact(usize::try_from(rest).unwrap_or_default());
        file.read_to_end(&mut bytes).map_err(unread)?;
    }
    Ok(Profile {
        kind,
        named: named(path),
        bytes,
    })
}

fn kind(head: &[u8]) -> Result<Kind, String> {
    let word = |n: usize| {
        Some(u64::from_le_bytes(
            head.get(8 * n..8 * n + 8)?.try_into().ok()?,
        ))
    };
    if head.is_empty() {
        return Err("it is empty: its program ended before it was written".to_owned());
    }
    if let Some(version) = indexed_version(head) {
        return Ok(Kind::Indexed(version));
    }
    match (word(0), word(1)) {
        (Some(MAGIC), Some(version)) => Ok(Kind::Raw(version & !VARIANT_MASK)),
        (Some(magic), _) if [MAGIC, MAGIC_32].contains(&magic.swap_bytes()) || magic == MAGIC_32 => {
            Err("a raw profile of a 32-bit or big-endian target; devprof reads 64-bit little-endian ones".to_owned())
        }
        // As LLVM's reader has it: eight characters.
        _ if head.iter().take(8).all(|&byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace()) => Ok(Kind::Text),
        _ => Err(format!("no profile: it begins with the bytes {:02x?}", &head[..head.len().min(8)])),
    }
}

/// The architecture in a file's name: `gfx1100.default.profraw`, `gfx1100.1.default.profraw`; also behind another word
/// (`run7-gfx90a.profraw`).
pub fn named(path: &Path) -> Option<Arch> {
    let name = path.file_name()?.to_str()?;
    let is_break = |c: char| matches!(c, '.' | '-' | '_');
    let mut starts = name.match_indices("gfx").map(|(at, _)| at);
    starts.find_map(|at| {
        let number = &name[at + 3..];
        let end = number.find(|c: char| !c.is_ascii_hexdigit() || c.is_ascii_uppercase());
        let (number, rest) = number.split_at(end.unwrap_or(number.len()));
        let ends = |rest: &str| rest.is_empty() || rest.starts_with(is_break);
        let begins = at == 0 || name[..at].ends_with(is_break);
        // gfx11-generic, gfx9-4-generic
        let generic = ["-generic", "-4-generic"]
            .into_iter()
            .find(|generic| rest.strip_prefix(generic).is_some_and(ends));
        let is_one = begins && ends(rest) && (generic.is_some() || (3..=4).contains(&number.len()));
        is_one.then(|| Arch::Gpu(format!("gfx{number}{}", generic.unwrap_or_default())))
    })
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

/// A part of a file that may differ between profiles of one code object.
#[derive(Clone, Debug)]
pub struct Counts {
    pub range: Range<usize>,
    pub what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// 64-bit numbers.
    Counters,
    /// In a record: the device's wave size, 0 until it has run the function.
    WaveSize,
}

/// All the raw profiles of a file.
#[derive(Debug, Default)]
pub struct Whole {
    pub functions: Vec<Function>,
    /// A record says that it ran on a GPU.
    pub device: bool,
    /// Where the counts are, in the file's order. `None`: there are other things in it than can be added up.
    pub counts: Option<Vec<Counts>>,
}

/// Temporal profiles have time stamps, those of byte coverage and of entries only no numbers.
const ADDABLE_VARIANTS: u64 = 1 << 55 | 1 << 56 | 1 << 57 | 1 << 58;

/// Checks all of a raw profile of version 10 or 11.
///
/// # Errors
/// What is damaged, and where.
pub fn check(bytes: &[u8], raw: u64) -> Result<Whole, String> {
    let mut whole = Whole {
        counts: Some(Vec::new()),
        ..Whole::default()
    };
    let mut base = 0;
    while base < bytes.len() {
        let at = |error: &dyn fmt::Display| match base {
            0 => error.to_string(),
            _ => format!("the profile that begins at byte {base:#x}: {error}"),
        };
        let own = &bytes[base..];
        if let Ok(Kind::Raw(version)) = kind(own)
            && version != raw
        {
            return Err(at(&format!(
                "raw version {version}, where the file begins with {raw}: no llvm-profdata reads both"
            )));
        }
        let layout = Layout::read(own).map_err(|e| at(&e))?;
        let mut claimed = 0u64;
        for ranges in profraw::counter_ranges(own, &layout) {
            let ranges = ranges.map_err(|e| match e {
                Error::Record { record, .. } => {
                    let start = base + layout.data.start + record * layout.format().record;
                    at(&format!("{e}; the record begins at byte {start:#x}"))
                }
                _ => at(&e),
            })?;
            whole.functions.push((ranges.name, ranges.hash));
            claimed += ranges.counters.len() as u64 / layout.header.counter();
        }
        // Each counter is one function's. llvm-profdata would read them again for every record that claims them.
        if claimed > layout.header.num_counters {
            return Err(at(&format!(
                "the records claim {claimed} counters, and there are {}",
                layout.header.num_counters
            )));
        }
        for text in names::texts(&own[layout.names.clone()]) {
            text.map_err(|e| {
                let start = base + layout.names.start;
                at(&format!("the names, which begin at byte {start:#x}: {e}"))
            })?;
        }
        let end = profraw::end(own, &layout).map_err(|e| at(&e))?;
        whole.note(own, base, &layout, end);
        base += end;
    }
    Ok(whole)
}

impl Whole {
    fn note(&mut self, bytes: &[u8], base: usize, layout: &Layout, end: usize) {
        let format: &Format = layout.format();
        let addable = layout.header.version & VARIANT_MASK & !ADDABLE_VARIANTS == 0
            && layout.bitmap.is_empty()
            && end == layout.end
            && layout.header.counter() == COUNTER;
        if !addable {
            self.counts = None;
        }
        let mut add = |range: Range<usize>, what| {
            if let Some(counts) = &mut self.counts {
                let range = base + range.start..base + range.end;
                counts.push(Counts { range, what });
            }
        };
        if let Some(at) = format.wave_size {
            for record in layout.data.clone().step_by(format.record) {
                let range = record + at..record + at + 2;
                self.device |= bytes[range.clone()] != [0, 0];
                add(range, What::WaveSize);
            }
        }
        add(layout.counters.clone(), What::Counters);
        add(layout.uniform.clone(), What::Counters);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profraw::format::{Header, V10};

    /// Version 10: two records with these pointers to the two counters that there are, and their numbers.
    fn profile(records: [(u64, u64); 2]) -> Vec<u8> {
        let mut words = Header {
            version: V10.version,
            num_data: 2,
            num_counters: 2,
            counters_delta: 128,
            ..Header::default()
        }
        .words();
        for (pointer, counters) in records {
            words.extend([0, 0, pointer, 0, 0, 0, counters, 0]);
        }
        words.extend([0, 0]);
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn a_counter_is_one_records() {
        let functions = |records| check(&profile(records), 10).map(|whole| whole.functions.len());
        assert_eq!(functions([(128, 1), (72, 1)]), Ok(2));
        let error = "the records claim 4 counters, and there are 2".to_owned();
        assert_eq!(functions([(128, 2), (64, 2)]), Err(error));
    }

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
        ] {
            assert_eq!(gpu(name), None, "{name}");
        }
    }
}
