//! Raw profiles of one code object differ only in their counts: they are added up here, so that llvm-profdata gets one
//! file for the thousand that a thousand processes wrote. The sum is what llvm-profdata itself would make of them.

use super::profile::{self, Arch, Counts, Function, Kind, Profile, What};
use profraw::Layout;
use profraw::format::{V10, V11};
use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};

/// Bytes of sums that are held at once. What finds no room goes to llvm-profdata as it is.
const ROOM: usize = 64 << 20;

/// llvm-profdata takes counts above 2^56 for damage; what comes near goes there as it is.
const LARGEST: u64 = 1 << 55;

/// Where a file has gone to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// To be merged by the llvm-profdata that reads this raw version.
    Raw(u64, Item),
    /// An indexed profile, of this version.
    Indexed(u64, Item),
    Text(Item),
    /// Added to a sum, which has its place already.
    Added,
}

/// What llvm-profdata gets as a file, see [`Sums::file`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    File(usize),
    /// It stands where its first file would.
    Sum(usize),
}

/// A file that was read.
pub struct Sorted {
    /// Index into [`Sums::files`].
    pub file: usize,
    pub arch: Arch,
    pub place: Place,
    /// The functions in it that are not known from the files before it. `None`: it was not read so far.
    pub functions: Option<Vec<Function>>,
}

/// The counts of several files.
struct Sum {
    /// A raw profile.
    image: Vec<u8>,
    /// Indices into [`Sums::files`].
    files: Vec<usize>,
    counts: Vec<Counts>,
    arch: Arch,
}

#[derive(Default)]
pub struct Sums {
    /// All files that are whole, and what they are of.
    pub files: Vec<(PathBuf, Arch)>,
    sums: Vec<Sum>,
    /// The sums whose files begin so: see [`key`].
    alike: HashMap<u64, Vec<usize>>,
    held: usize,
}

/// What goes into one output.
#[derive(Default)]
pub struct Pile {
    /// Indices into [`Sums::files`].
    pub files: Vec<usize>,
    /// What each function that was read counted on: an index into `archs`.
    functions: HashMap<Function, usize>,
    archs: Vec<Arch>,
    /// Functions that counted on several architectures, and these.
    mixed: (HashSet<Function>, BTreeSet<Arch>),
    /// There are files in it of which devprof read nothing but their beginning.
    unread: bool,
    /// By raw version.
    pub raw: BTreeMap<u64, Vec<Item>>,
    /// What every llvm-profdata reads that is new enough.
    pub others: Vec<Item>,
    /// The highest version among the indexed ones.
    pub indexed: u64,
}

impl Pile {
    pub fn add(&mut self, sorted: Sorted) {
        let Sorted {
            file,
            arch,
            place,
            functions,
        } = sorted;
        self.unread |= functions.is_none();
        let known = self.archs.iter().position(|known| *known == arch);
        let own = known.unwrap_or_else(|| {
            self.archs.push(arch.clone());
            self.archs.len() - 1
        });
        for function in functions.into_iter().flatten() {
            let first = *self.functions.entry(function).or_insert(own);
            if first != own {
                self.mixed.0.insert(function);
                self.mixed
                    .1
                    .extend([self.archs[first].clone(), arch.clone()]);
            }
        }
        self.files.push(file);
        match place {
            Place::Added => {}
            Place::Raw(version, item) => self.raw.entry(version).or_default().push(item),
            Place::Indexed(version, item) => {
                self.indexed = self.indexed.max(version);
                self.others.push(item);
            }
            Place::Text(item) => self.others.push(item),
        }
    }

    /// How many functions are in it, where all of it was read.
    pub fn functions(&self) -> Option<usize> {
        (!self.unread).then_some(self.functions.len())
    }

    /// How many functions counted on several architectures, and on which.
    pub fn mixed(&self) -> (usize, &BTreeSet<Arch>) {
        (self.mixed.0.len(), &self.mixed.1)
    }
}

/// Of what all profiles of one code object have in common at their beginning: their length, the header, the binary ids.
fn key(bytes: &[u8], named: Option<&Arch>, first: &Layout) -> u64 {
    let mut hasher = DefaultHasher::new();
    (bytes.len(), named, &bytes[..first.binary_ids.end]).hash(&mut hasher);
    hasher.finish()
}

enum Fit {
    Added,
    /// Of another code object.
    Other,
    /// The sum would be too large.
    TooMuch,
}

impl Sums {
    /// Checks a file, and adds it to the sum of its code object, if it can be added.
    ///
    /// # Errors
    /// What is damaged, and where.
    pub fn sort(&mut self, path: &Path, profile: Profile) -> Result<Sorted, String> {
        let file = self.files.len();
        let unread = |place| Sorted {
            file,
            arch: profile.named.clone().unwrap_or(Arch::Unknown),
            place,
            functions: None,
        };
        let sorted = match profile.kind {
            Kind::Raw(version) if [V10.version, V11.version].contains(&version) => {
                self.raw(file, version, profile)?
            }
            Kind::Raw(version) => unread(Place::Raw(version, Item::File(file))),
            Kind::Indexed(version) => unread(Place::Indexed(version, Item::File(file))),
            Kind::Text => unread(Place::Text(Item::File(file))),
        };
        self.files.push((path.to_owned(), sorted.arch.clone()));
        Ok(sorted)
    }

    /// An item as one file, and the files that are in it.
    ///
    /// # Errors
    /// A sum cannot be written.
    pub fn file(&self, item: Item, scratch: &Path) -> Result<(PathBuf, Vec<usize>), String> {
        let sum = match item {
            Item::File(file) => return Ok((self.files[file].0.clone(), vec![file])),
            Item::Sum(sum) => sum,
        };
        let Sum { image, files, .. } = &self.sums[sum];
        if let [one] = files[..] {
            return Ok((self.files[one].0.clone(), vec![one]));
        }
        let path = scratch.join(format!("sum-{sum}.profraw"));
        fs::write(&path, image).map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        Ok((path, files.clone()))
    }

    fn raw(&mut self, file: usize, version: u64, profile: Profile) -> Result<Sorted, String> {
        let Profile { bytes, named, .. } = profile;
        let first = Layout::read(&bytes).map_err(|e| e.to_string())?;
        let key = key(&bytes, named.as_ref(), &first);
        let mut place = Place::Raw(version, Item::File(file));
        for &n in self.alike.get(&key).into_iter().flatten() {
            let sum = &mut self.sums[n];
            match sum.add(&bytes) {
                Fit::Other => continue,
                Fit::Added => {
                    sum.files.push(file);
                    place = Place::Added;
                }
                Fit::TooMuch => {}
            }
            return Ok(Sorted {
                file,
                arch: sum.arch.clone(),
                place,
                functions: Some(Vec::new()),
            });
        }
        let whole = profile::check(&bytes, version)?;
        let arch = named.unwrap_or(match whole.device {
            true => Arch::Unknown,
            false => Arch::Host,
        });
        if let Some(counts) = whole.counts
            && self.held + bytes.len() <= ROOM
            && small(&bytes, &counts)
        {
            self.held += bytes.len();
            place = Place::Raw(version, Item::Sum(self.sums.len()));
            self.alike.entry(key).or_default().push(self.sums.len());
            self.sums.push(Sum {
                image: bytes,
                files: vec![file],
                counts,
                arch: arch.clone(),
            });
        }
        Ok(Sorted {
            file,
            arch,
            place,
            functions: Some(whole.functions),
        })
    }
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let (words, _) = bytes.as_chunks();
    words.iter().map(|&word| u64::from_le_bytes(word))
}

/// No count is so large that adding takes care.
fn small(bytes: &[u8], counts: &[Counts]) -> bool {
    let counters = counts.iter().filter(|part| part.what == What::Counters);
    let all = counters.flat_map(|part| words(&bytes[part.range.clone()]));
    all.fold(0, |all, word| all | word) < LARGEST
}

impl Sum {
    /// Adds the counts of a file, if it is of the same code object.
    fn add(&mut self, bytes: &[u8]) -> Fit {
        if !self.is_alike(bytes) {
            return Fit::Other;
        }
        let counters = || {
            self.counts
                .iter()
                .filter(|part| part.what == What::Counters)
        };
        // Both are small, so that no sum wraps; a large one sets a bit that stays.
        let largest = counters().fold(0, |all, part| {
            let both =
                words(&self.image[part.range.clone()]).zip(words(&bytes[part.range.clone()]));
            both.fold(all, |all, (sum, new)| all | new | sum.wrapping_add(new))
        });
        if largest >= LARGEST {
            return Fit::TooMuch;
        }
        for Counts { range, what } in &self.counts {
            let (sum, new) = (&mut self.image[range.clone()], &bytes[range.clone()]);
            match what {
                // One of them is 0, or they are the same.
                What::WaveSize => sum.iter_mut().zip(new).for_each(|(sum, new)| *sum |= new),
                What::Counters => {
                    let (sum, _) = sum.as_chunks_mut::<8>();
                    for (sum, new) in sum.iter_mut().zip(words(new)) {
                        *sum = u64::from_le_bytes(*sum).wrapping_add(new).to_le_bytes();
                    }
                }
            }
        }
        Fit::Added
    }

    /// Whether a file is the same but for its counts.
    fn is_alike(&self, bytes: &[u8]) -> bool {
        if bytes.len() != self.image.len() {
            return false;
        }
        let mut fixed = 0;
        for Counts { range, what } in &self.counts {
            let (sum, new) = (&self.image[range.clone()], &bytes[range.clone()]);
            let ran = |size: &[u8]| size != [0, 0];
            if self.image[fixed..range.start] != bytes[fixed..range.start]
                || (*what == What::WaveSize && ran(sum) && ran(new) && sum != new)
            {
                return false;
            }
            fixed = range.end;
        }
        self.image[fixed..] == bytes[fixed..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profraw::format::Header;
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

    fn sort(sums: &mut Sums, name: &str, bytes: &[u8]) -> String {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        let sorted = profile::open(&path).and_then(|profile| sums.sort(&path, profile));
        match sorted {
            Ok(Sorted { arch, place, .. }) => format!("{arch} {place:?}"),
            Err(error) => error,
        }
    }

    #[test]
    fn profiles_of_one_code_object_are_added_up() {
        let mut sums = Sums::default();
        let gpu = "gfx1100.a.profraw";
        assert_eq!(
            sort(&mut sums, gpu, &image(b'a', [1, 2], [1, 0], 0)),
            "gfx1100 Raw(11, Sum(0))"
        );
        assert_eq!(
            sort(&mut sums, gpu, &image(b'a', [10, 20], [5, 6], 32)),
            "gfx1100 Added"
        );
        assert_eq!(
            sort(&mut sums, gpu, &image(b'a', [100, 0], [0, 0], 32)),
            "gfx1100 Added"
        );
        let sum = &sums.sums[0];
        assert_eq!(
            (&sum.image, &sum.files[..]),
            (&image(b'a', [111, 22], [6, 6], 32), &[0, 1, 2][..])
        );
        // Another function, GPU, wave size; no name that tells the GPU.
        let other = image(b'b', [1, 1], [1, 1], 32);
        assert_eq!(sort(&mut sums, gpu, &other), "gfx1100 Raw(11, Sum(1))");
        assert_eq!(
            sort(&mut sums, "gfx942.a.profraw", &other),
            "gfx942 Raw(11, Sum(2))"
        );
        assert_eq!(
            sort(&mut sums, gpu, &image(b'a', [1, 1], [1, 1], 64)),
            "gfx1100 Raw(11, Sum(3))"
        );
        assert_eq!(
            sort(&mut sums, "a.profraw", &other),
            "unknown Raw(11, Sum(4))"
        );
        assert_eq!(
            sort(&mut sums, "a.profraw", &image(b'c', [1, 1], [1, 1], 0)),
            "host Raw(11, Sum(5))"
        );
    }

    #[test]
    fn what_cannot_be_added_goes_to_llvm_profdata_as_it_is() {
        let mut sums = Sums::default();
        let large = image(b'a', [1 << 55, 0], [0, 0], 0);
        assert_eq!(sort(&mut sums, "a", &large), "host Raw(11, File(0))");
        let half = image(b'a', [1 << 54, 0], [0, 0], 0);
        assert_eq!(sort(&mut sums, "a", &half), "host Raw(11, Sum(0))");
        assert_eq!(
            sort(&mut sums, "a", &half),
            "host Raw(11, File(2))",
            "too large a sum"
        );
        assert_eq!(sums.sums[0].image, half);
        let mut temporal = image(b'a', [1, 2], [0, 0], 0);
        temporal[15] = 0x80;
        assert_eq!(sort(&mut sums, "a", &temporal), "host Raw(11, File(3))");
        // A value profile of 8 bytes behind a record with a value site.
        let mut bytes = image(b'a', [1, 2], [0, 0], 0);
        bytes[19 * 8 + 60] = 1;
        assert!(sort(&mut sums, "a", &bytes).contains("the value profile of record 0"));
        bytes.extend([8, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(sort(&mut sums, "a", &bytes), "host Raw(11, File(4))");
        assert_eq!(
            sort(&mut sums, "a", b":ir\nmain\n1\n1\n2\n"),
            "unknown Text(File(5))"
        );
        assert_eq!(
            sort(&mut sums, "gfx90a.x", b"\xfflprofi\x81\x0d\0\0\0\0\0\0\x01"),
            "gfx90a Indexed(13, File(6))"
        );
        let mut later = image(b'a', [1, 2], [0, 0], 0);
        later[8] = 12;
        assert_eq!(sort(&mut sums, "a", &later), "unknown Raw(12, File(7))");
    }

    #[test]
    fn what_is_damaged_is_said_with_its_place() {
        let good = image(b'a', [1, 2], [0, 0], 0);
        let damaged = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = good.clone();
            change(&mut bytes);
            sort(&mut Sums::default(), "gfx1100.a", &bytes)
        };
        let at = |place: usize, value: u8| damaged(&|bytes| bytes[place] = value);
        let mut said = String::new();
        for (what, error) in [
            ("short", damaged(&|bytes| bytes.truncate(200))),
            ("garbage behind", damaged(&|bytes| bytes.extend([1; 8]))),
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
            ("no profile", at(0, 0)),
            ("empty", damaged(&|bytes| bytes.clear())),
            ("32 bits", at(1, b'R')),
        ] {
            writeln!(said, "{what}: {error}").unwrap();
        }
        assert_eq!(
            said,
            "\
short: at byte 0x98: data records extend past the end of the file (200 bytes)
garbage behind: the profile that begins at byte 0x108: not a raw profile of a little-endian 64-bit target: it begins with \
0x101010101010101
second one short: the profile that begins at byte 0x108: at byte 0x98: data records extend past the end of the file (160 bytes)
second of another version: the profile that begins at byte 0x108: raw version 10, where the file begins with 11: no \
llvm-profdata reads both
counter pointer: record 0: counters out of bounds; the record begins at byte 0x98
names: the names, which begin at byte 0x100: invalid names section at byte 0: a size past the end of the section
no profile: no profile: it begins with the bytes [00, 72, 66, 6f, 72, 70, 6c, ff]
empty: it is empty: its program ended before it was written
32 bits: a raw profile of a 32-bit or big-endian target; devprof reads 64-bit little-endian ones
"
        );
    }
}
