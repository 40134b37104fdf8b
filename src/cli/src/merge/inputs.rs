//! The files for llvm-profdata. Raw profiles of one code object differ only in their counters. The counters are
//! added here, so that llvm-profdata reads one file instead of the thousand files of a thousand processes. The result is
//! the same as if llvm-profdata had merged the files.

use super::profile::{self, Arch, Function, Kind, Profile};
use anyhow::{Context, Result};
use profraw::Layout;
use profraw::counts::{Counts, MAX_COUNT};
use profraw::format::Format;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Total size of the sums in memory, in bytes. Files of further code objects go to llvm-profdata as they are.
const MAX_SUMS: usize = 64 << 20;

/// A file for llvm-profdata, or several whose counters were added.
pub struct Input {
    pub kind: Kind,
    pub arch: Arch,
    /// In hexadecimal. `None`: the files have none, or are not raw profiles.
    pub build_id: Option<String>,
    pub files: Vec<PathBuf>,
    /// Files of the same code object can be added to it.
    sum: Option<Sum>,
}

struct Sum {
    /// A file of raw profiles.
    bytes: Vec<u8>,
    counts: Counts,
}

impl Sum {
    /// `None` if llvm-profdata has to read the file itself.
    fn new(bytes: Vec<u8>) -> Option<Sum> {
        let counts = Counts::read(&bytes).ok()?;
        let is_valid = counts.words(&bytes).all(|count| count <= MAX_COUNT);
        (is_valid && counts.sums_like_llvm()).then_some(Sum { bytes, counts })
    }
}

#[derive(Default)]
pub struct Inputs {
    pub all: Vec<Input>,
    /// Indices of inputs with a sum, by the architecture in the names of their files, and their headers and binary ids.
    by_start: HashMap<(Option<Arch>, Vec<u8>), Vec<usize>>,
    /// Size of all sums, in bytes.
    sums: usize,
}

/// A file that was added to the inputs.
pub struct Added {
    /// Index into [`Inputs::all`].
    pub input: usize,
    /// The file is the first of this input.
    pub is_new: bool,
    /// The functions in the file, unless an earlier file of the same code object had them already. `None`: the file was
    /// not read.
    pub functions: Option<Vec<Function>>,
}

impl Inputs {
    /// Validates a file, and adds its counters to the counters of its code object if possible.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn add(&mut self, path: &Path, profile: Profile) -> Result<Added> {
        let Profile { kind, named, bytes } = profile;
        let version = match kind {
            Kind::Raw(version) if Format::of_version(version).is_some() => version,
            _ => {
                let arch = named.unwrap_or_else(|| profile::of_merged(path));
                return Ok(self.push(path, kind, arch, None, None));
            }
        };
        let layout = Layout::read(&bytes)?;
        let build_id = profraw::binary_ids(&bytes[layout.binary_ids.clone()]).pop();
        let start = (named, bytes[..layout.binary_ids.end].to_vec());
        for &input in self.by_start.get(&start).into_iter().flatten() {
            let Input {
                arch, files, sum, ..
            } = &mut self.all[input];
            let Some(sum) = sum else { continue };
            let functions = Some(Vec::new());
            match sum.counts.add_exactly(&mut sum.bytes, &bytes) {
                // Of another code object.
                Err(_) => {}
                Ok(true) => {
                    files.push(path.to_owned());
                    return Ok(Added {
                        input,
                        is_new: false,
                        functions,
                    });
                }
                Ok(false) => {
                    let arch = arch.clone();
                    return Ok(self.push(path, kind, arch, build_id, functions));
                }
            }
        }
        let checked = profile::check(&bytes, version)?;
        let (named, _) = &start;
        let unnamed = if checked.is_device {
            Arch::Unknown
        } else {
            Arch::Host
        };
        let arch = named.clone().unwrap_or(unnamed);
        let added = self.push(path, kind, arch, build_id, Some(checked.functions));
        if self.sums + bytes.len() <= MAX_SUMS
            && let Some(sum) = Sum::new(bytes)
        {
            self.sums += sum.bytes.len();
            self.all[added.input].sum = Some(sum);
            self.by_start.entry(start).or_default().push(added.input);
        }
        Ok(added)
    }

    fn push(
        &mut self,
        path: &Path,
        kind: Kind,
        arch: Arch,
        build_id: Option<String>,
        functions: Option<Vec<Function>>,
    ) -> Added {
        self.all.push(Input {
            kind,
            arch,
            build_id,
            files: vec![path.to_owned()],
            sum: None,
        });
        Added {
            input: self.all.len() - 1,
            is_new: true,
            functions,
        }
    }

    /// An input as one file: the file itself, or the sum of several, which is written to `scratch`.
    pub fn file(&self, input: usize, scratch: &Path) -> Result<PathBuf> {
        let Input { files, sum, .. } = &self.all[input];
        match (&files[..], sum) {
            ([_, _, ..], Some(sum)) => {
                let path = scratch.join(format!("sum-{input}.profraw"));
                fs::write(&path, &sum.bytes)
                    .with_context(|| format!("cannot write {}", path.display()))?;
                Ok(path)
            }
            _ => Ok(files[0].clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profraw::format::{Header, V11};
    use std::fmt::Write;

    /// A profile of version 11 of one function, whose name is `name`.
    fn image(name: u8, counters: [u64; 2], uniform: [u64; 2], wave: u64) -> Vec<u8> {
        let header = Header {
            version: V11.version,
            num_data: 1,
            num_counters: 2,
            num_uniform: 2,
            counters_delta: 72,
            uniform_delta: 88,
            names: 3,
            ..Header::default()
        };
        let mut words = header.words();
        // Name, hash, the two pointers, three addresses, two counters, the wave size.
        words.extend([u64::from(name), 7, 72, 88, 0, 0, 0, 2, wave << 16]);
        words.extend(counters.iter().chain(&uniform));
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend([1, 0, name, 0, 0, 0, 0, 0]);
        bytes
    }

    /// Architecture and kind of the input that a file is added to, its index, and "new" for its first file.
    fn add(inputs: &mut Inputs, name: &str, bytes: &[u8]) -> String {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        match profile::open(&path).and_then(|profile| inputs.add(&path, profile)) {
            Ok(added) => {
                let Input {
                    arch, kind, sum, ..
                } = &inputs.all[added.input];
                let sum = if sum.is_some() { " sum" } else { "" };
                let new = if added.is_new { " new" } else { "" };
                format!("{arch} {kind:?} {}{sum}{new}", added.input)
            }
            Err(error) => format!("{error:#}"),
        }
    }

    #[test]
    fn profiles_of_one_code_object_are_added() {
        let mut inputs = Inputs::default();
        let a = |counters, uniform, wave| image(b'a', counters, uniform, wave);
        let other = image(b'b', [1, 1], [1, 1], 32);
        for (name, bytes, expected) in [
            (
                "gfx1100.a",
                a([1, 2], [1, 0], 0),
                "gfx1100 Raw(11) 0 sum new",
            ),
            (
                "gfx1100.a",
                a([10, 20], [5, 6], 32),
                "gfx1100 Raw(11) 0 sum",
            ),
            (
                "gfx1100.a",
                a([100, 0], [0, 0], 32),
                "gfx1100 Raw(11) 0 sum",
            ),
            // Another function, GPU, wave size; a name without a GPU.
            ("gfx1100.a", other.clone(), "gfx1100 Raw(11) 1 sum new"),
            ("gfx942.a", other.clone(), "gfx942 Raw(11) 2 sum new"),
            (
                "gfx1100.a",
                a([1, 1], [1, 1], 64),
                "gfx1100 Raw(11) 3 sum new",
            ),
            ("a", other, "unknown Raw(11) 4 sum new"),
            (
                "a",
                image(b'c', [1, 1], [1, 1], 0),
                "host Raw(11) 5 sum new",
            ),
        ] {
            assert_eq!(
                add(&mut inputs, &format!("{name}.profraw"), &bytes),
                expected
            );
        }
        let Input { sum, files, .. } = &inputs.all[0];
        let sum = &sum.as_ref().unwrap().bytes;
        assert_eq!((sum, files.len()), (&a([111, 22], [6, 6], 32), 3));
    }

    #[test]
    fn files_that_cannot_be_added_go_to_llvm_profdata_as_they_are() {
        let mut inputs = Inputs::default();
        let image = |first| image(b'a', [first, 2], [0, 0], 0);
        let changed = |offset: usize, value| {
            let mut bytes = image(1);
            bytes[offset] = value;
            bytes
        };
        let half = image(MAX_COUNT / 2 + 1);
        // A value profile of 8 bytes after a record with a value site.
        let no_values = changed(19 * 8 + 60, 1);
        let values = [&no_values[..], &[8, 0, 0, 0, 0, 0, 0, 0]].concat();
        let indexed = b"\xfflprofi\x81\x0d\0\0\0\0\0\0\x01";
        for (name, bytes, expected) in [
            ("a", &image(MAX_COUNT + 1)[..], "host Raw(11) 0 new"),
            ("a", &half, "host Raw(11) 1 sum new"),
            // The sum would be too large.
            ("a", &half, "host Raw(11) 2 new"),
            // With temporal profiles.
            ("a", &changed(15, 0x80), "host Raw(11) 3 new"),
            ("a", &values, "host Raw(11) 4 new"),
            ("a", b":ir\nmain\n1\n1\n2\n", "unknown Text 5 new"),
            ("gfx90a.x", indexed, "gfx90a Indexed(13) 6 new"),
            // Of a later version.
            ("a", &changed(8, 12), "unknown Raw(12) 7 new"),
        ] {
            assert_eq!(add(&mut inputs, name, bytes), expected);
        }
        assert_eq!(inputs.all[1].sum.as_ref().unwrap().bytes, half);
        let error = add(&mut inputs, "a", &no_values);
        assert!(error.contains("the value profile of record 0"), "{error}");
    }

    #[test]
    fn damage_is_reported_with_its_offset() {
        let good = image(b'a', [1, 2], [0, 0], 0);
        let damaged = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = good.clone();
            change(&mut bytes);
            add(&mut Inputs::default(), "gfx1100.a", &bytes)
        };
        let at = |offset: usize, value: u8| damaged(&|bytes| bytes[offset] = value);
        let mut report = String::new();
        for (what, error) in [
            ("short", damaged(&|bytes| bytes.truncate(200))),
            ("short header", damaged(&|bytes| bytes.truncate(15))),
            ("trailing garbage", damaged(&|bytes| bytes.extend([1; 8]))),
            (
                "second one short",
                damaged(&|bytes| bytes.extend(&good[..160])),
            ),
            (
                "second of another version",
                damaged(&|bytes| {
                    bytes.extend(&good);
                    bytes[264 + 8] = 10
                }),
            ),
            ("counter pointer", at(19 * 8 + 16, 0)),
            ("names", at(19 * 8 + 72 + 32, 9)),
            ("other file", at(0, 0)),
            ("empty", damaged(&|bytes| bytes.clear())),
            ("32 bits", at(1, b'R')),
        ] {
            writeln!(report, "{what}: {error}").unwrap();
        }
        assert_eq!(
            report,
            "\
short: at byte 0x98: data records extend past the end of the file (200 bytes)
short header: the file ends inside its header
trailing garbage: profile at byte 0x108: not a raw profile of a little-endian 64-bit target: it begins with \
0x101010101010101
second one short: profile at byte 0x108: at byte 0x98: data records extend past the end of the file (160 bytes)
second of another version: profile at byte 0x108: raw version 10, but the file begins with version 11: no \
llvm-profdata reads both
counter pointer: record 0: counters out of bounds; the record begins at byte 0x98
names: names at byte 0x100: invalid names section at byte 0: a size past the end of the section
other file: not a profile: it begins with the bytes [00, 72, 66, 6f, 72, 70, 6c, ff]
empty: empty file: the program ended before writing it
32 bits: a raw profile of a 32-bit or big-endian target; devprof reads 64-bit little-endian ones
"
        );
    }
}
