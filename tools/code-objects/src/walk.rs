//! The way from a file to everything in it: containers within containers, each read by its own module, and what is
//! wrong with a part told without giving up the rest.

use crate::bytes::{Bad, Bytes, Keeper, read_some};
use crate::elf::Elf;
use crate::object::{self, CodeObject};
use crate::packed::{Packed, Unpacker};
use crate::place::{Place, Step};
use crate::profile::{self, Indexed, Raw, Trace};
use crate::target::Target;
use crate::{archive, bundle, kpack, offload, packed};
use goblin::elf::header::{ET_DYN, ET_EXEC, ET_REL};
use goblin::elf::program_header::{PF_X, PT_LOAD};
use serde::Serialize;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Something in a file.
#[derive(Debug)]
pub struct Found {
    pub place: Place,
    pub what: What,
    /// All of it, or of a code object in something compressed what tells what it is (see [`Options::whole`]). Nothing
    /// of damage.
    pub bytes: Option<Bytes>,
}

/// What was found. A container comes before what it contains.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "what")]
pub enum What {
    CodeObject(Box<CodeObject>),
    Host(Host),
    Archive {
        thin: bool,
    },
    Bundle(Bundle),
    OffloadBinary {
        version: u32,
        images: usize,
    },
    Kpack(Kpack),
    /// LLVM bitcode: what a translation unit is before its device link.
    Bitcode,
    SpirV,
    RawProfile(Raw),
    Profile(Indexed),
    Trace(Trace),
    /// None of what is known.
    Unknown {
        first: Vec<u8>,
    },
    /// A part that could not be read.
    Damage {
        why: String,
    },
}

/// A host's ELF file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Host {
    pub machine: String,
    pub kind: &'static str,
    pub build_id: Option<String>,
    /// Its own code counts.
    pub profile: bool,
    /// The host code's coverage mapping is there.
    pub coverage: bool,
    /// It has a section that may hold device code.
    pub device_code: bool,
    /// Its device code is in archives.
    pub kpack: Option<kpack::Reference>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Bundle {
    /// The targets, in the bundle's order.
    pub entries: Vec<String>,
    pub packed: Option<Packed>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Kpack {
    pub group: String,
    pub family: String,
    pub packed: bool,
    pub kernels: usize,
}

/// Which code objects are wanted, by target.
pub type Wanted<'a> = &'a dyn Fn(&Target) -> bool;

/// What to do on the way.
#[derive(Clone, Copy, Default)]
pub struct Options<'a> {
    /// Code objects that were compressed are unpacked into files in this directory, which go when nobody wants them
    /// any more. Without it, nothing but code is left out of [`Found::bytes`].
    pub whole: Option<&'a Path>,
    /// Others are passed over.
    pub wanted: Option<Wanted<'a>>,
}

/// Containers in containers deeper than this are told as damage.
const MOST_DEPTH: usize = 8;

/// Bytes of names, kernels and places that a walk tells at most. Real libraries tell a few MiB; a compressed file could
/// tell more than memory holds.
const MOST_TOLD: u64 = 256 << 20;

/// Takes what is found, and ends the walk if it wants to.
pub type Each<'a> = &'a mut dyn FnMut(Found) -> ControlFlow<()>;

/// Shows `each` everything in a file, in its order.
pub fn walk(file: &Path, options: Options, each: Each) {
    let mut walk = Walk::new(options, each);
    let place = Place::new(file);
    // Ended by `each`, or by the end.
    let _ = match open(file) {
        Ok((bytes, id)) => {
            walk.open.insert(id);
            walk.bytes(&place, &bytes)
        }
        Err(why) => walk.damage(&place, Bad::new(0, why)),
    };
}

/// Shows `each` everything in bytes that came from `place`.
pub fn walk_bytes(place: &Path, bytes: Bytes, options: Options, each: Each) {
    let _ = Walk::new(options, each).bytes(&Place::new(place), &bytes);
}

/// Opens a regular file; it, and what tells it from others.
fn open(file: &Path) -> Result<(Bytes, (u64, u64)), String> {
    let failed = |error: io::Error| format!("cannot be opened: {error}");
    // A pipe would wait for its writer.
    let metadata = std::fs::metadata(file).map_err(failed)?;
    if metadata.is_dir() {
        return Err("a directory: name files".into());
    }
    if !metadata.is_file() {
        return Err("not a regular file".into());
    }
    let opened = File::open(file).map_err(failed)?;
    let bytes = Bytes::of_file(opened).map_err(failed)?;
    Ok((bytes, (metadata.dev(), metadata.ino())))
}

struct Walk<'a, 'b> {
    options: Options<'a>,
    each: Each<'b>,
    depth: usize,
    /// Bytes told so far.
    told: u64,
    /// Files that are being read, by device and number: an archive may name itself.
    open: HashSet<(u64, u64)>,
}

const NEXT: ControlFlow<()> = ControlFlow::Continue(());

impl<'a, 'b> Walk<'a, 'b> {
    fn new(options: Options<'a>, each: Each<'b>) -> Self {
        Walk {
            options,
            each,
            depth: 0,
            told: 0,
            open: HashSet::new(),
        }
    }

    fn tell(&mut self, place: &Place, what: What, bytes: Option<Bytes>) -> ControlFlow<()> {
        self.told += weight(place, &what);
        if self.told > MOST_TOLD {
            let why = format!(
                "what is in the file so far has {} MiB of names: the rest is left out",
                MOST_TOLD >> 20
            );
            let place = place.clone();
            let what = What::Damage { why };
            let _ = (self.each)(Found {
                place,
                what,
                bytes: None,
            });
            return ControlFlow::Break(());
        }
        (self.each)(Found {
            place: place.clone(),
            what,
            bytes,
        })
    }

    fn damage(&mut self, place: &Place, bad: Bad) -> ControlFlow<()> {
        self.tell(&place.at(bad.at), What::Damage { why: bad.what }, None)
    }

    fn damages(&mut self, place: &Place, all: Vec<Bad>) -> ControlFlow<()> {
        all.into_iter().try_for_each(|bad| self.damage(place, bad))
    }

    /// Whatever it is.
    fn bytes(&mut self, place: &Place, bytes: &Bytes) -> ControlFlow<()> {
        if self.depth == MOST_DEPTH {
            let what = format!("more than {MOST_DEPTH} containers in one another");
            return self.damage(place, Bad::new(0, what));
        }
        self.depth += 1;
        let flow = self.kind(place, bytes);
        self.depth -= 1;
        flow
    }

    fn kind(&mut self, place: &Place, bytes: &Bytes) -> ControlFlow<()> {
        let head = match bytes.head(64) {
            Ok(head) => head,
            Err(bad) => return self.damage(place, bad),
        };
        if head.starts_with(b"\x7fELF") {
            return self.elf(place, bytes, &head);
        }
        if archive::is_archive(&head) {
            return self.archive(place, bytes);
        }
        if head.starts_with(bundle::MAGIC) || packed::is_packed(&head) || head.starts_with(b"CCOB")
        {
            return self.bundles(place, bytes);
        }
        if head.starts_with(offload::MAGIC) {
            return self.offload(place, bytes);
        }
        if head.starts_with(kpack::MAGIC) {
            return self.kpack(place, bytes);
        }
        let told = |what: Result<What, Bad>, walk: &mut Self| match what {
            Ok(what) => walk.tell(place, what, Some(bytes.clone())),
            Err(bad) => walk.damage(place, bad),
        };
        if let Some((bits, big_endian)) = profile::raw_kind(&head) {
            let (raw, bad) = profile::raw(bytes, bits, big_endian);
            self.tell(place, What::RawProfile(raw), Some(bytes.clone()))?;
            return bad.map_or(NEXT, |bad| self.damage(place, bad));
        }
        if profile::is_indexed(&head) {
            return told(profile::indexed(bytes).map(What::Profile), self);
        }
        if head.starts_with(&tracefile::format::MAGIC) {
            return told(profile::trace(bytes).map(What::Trace), self);
        }
        let what = match *head {
            [b'B', b'C', 0xc0, 0xde, ..] | [0xde, 0xc0, 0x17, 0x0b, ..] => What::Bitcode,
            [0x03, 0x02, 0x23, 0x07, ..] => What::SpirV,
            _ => What::Unknown {
                first: head[..head.len().min(16)].to_vec(),
            },
        };
        self.tell(place, what, Some(bytes.clone()))
    }

    fn elf(&mut self, place: &Place, bytes: &Bytes, head: &[u8]) -> ControlFlow<()> {
        let target = object::target(head);
        if let (Some((target, _)), Some(wanted)) = (&target, self.options.wanted)
            && !wanted(target)
        {
            return NEXT;
        }
        let elf = match Elf::read(bytes) {
            Ok(elf) => elf,
            Err(bad) => return self.damage(place, bad),
        };
        if target.is_none() {
            return self.host(place, elf);
        }
        let (object, problems) = object::read(elf);
        let what = What::CodeObject(Box::new(object));
        self.tell(place, what, Some(bytes.clone()))?;
        self.damages(place, problems)
    }

    fn host(&mut self, place: &Place, mut elf: Elf) -> ControlFlow<()> {
        let notes = elf.notes();
        let has = |start: &str| elf.sections.iter().any(|s| s.name.starts_with(start));
        let mut problems = Vec::new();
        let reference = elf.section(".rocm_kpack_ref").and_then(|s| s.range());
        let kpack = reference.and_then(|(at, size)| {
            let read = elf.bytes.read(at, size.min(1 << 20));
            match read.and_then(|bytes| kpack::reference(&bytes)) {
                Ok(reference) => Some(reference),
                Err(bad) => {
                    problems.push(bad.moved(at));
                    None
                }
            }
        });
        let parts: Vec<(Step, u64, u64)> = elf
            .sections
            .iter()
            .filter(|section| {
                let name = section.name.as_str();
                name == ".hip_fatbin" || name == ".llvm.offloading" || is_bundled(name)
            })
            .filter_map(|section| {
                let (at, size) = section.range()?;
                // clang-offload-bundler names an entry's section so.
                let step = match section.name.strip_prefix(BUNDLED) {
                    Some(id) => Step::Entry {
                        number: 1,
                        id: id.to_owned(),
                    },
                    None => Step::Section(section.name.clone()),
                };
                Some((step, at, size))
            })
            .collect();
        let host = Host {
            machine: machine(elf.header.e_machine),
            kind: match elf.header.e_type {
                ET_REL => "object",
                ET_EXEC => "executable",
                ET_DYN if elf.section(".interp").is_some() => "executable",
                ET_DYN => "library",
                _ => "file",
            },
            build_id: elf.build_id(&notes),
            profile: has("__llvm_prf_"),
            coverage: has("__llvm_covfun"),
            device_code: !parts.is_empty(),
            kpack,
        };
        self.tell(place, What::Host(host), Some(elf.bytes.clone()))?;
        problems.append(&mut elf.problems);
        self.damages(place, problems)?;
        let mut end = 0;
        for (step, at, size) in in_order(parts) {
            if at < end {
                self.damage(
                    place,
                    Bad::new(at, format!("{step} lies over what is before it")),
                )?;
                continue;
            }
            // A section that ends beyond the file was told.
            let Ok(part) = elf
                .bytes
                .slice(at, size.min(elf.bytes.size().saturating_sub(at)))
            else {
                continue;
            };
            end = at + part.size();
            let inner = place.step(step, at);
            let is_zero = part
                .head(4096)
                .is_ok_and(|head| head.iter().all(|&byte| byte == 0));
            if part.size() == 0 || is_zero && kpack_took(&elf) {
                continue;
            }
            self.bytes(&inner, &part)?;
        }
        NEXT
    }

    fn archive(&mut self, place: &Place, bytes: &Bytes) -> ControlFlow<()> {
        let members = match archive::Members::new(bytes) {
            Ok(members) => members,
            Err(bad) => return self.damage(place, bad),
        };
        let thin = members.thin;
        self.tell(place, What::Archive { thin }, Some(bytes.clone()))?;
        for member in members {
            let member = match member {
                Ok(member) => member,
                Err(bad) => return self.damage(place, bad),
            };
            if thin {
                self.beside(place, &member)?;
                continue;
            }
            let inner = place.step(Step::Member(member.name.clone()), member.at);
            match bytes.slice(member.at, member.size) {
                Ok(part) if part.size() > 0 => self.bytes(&inner, &part)?,
                Ok(_) => {}
                Err(bad) => self.damage(place, bad)?,
            }
        }
        NEXT
    }

    /// A member of a thin archive: a file, or a member of an archive beside it.
    fn beside(&mut self, place: &Place, member: &archive::Member) -> ControlFlow<()> {
        let dir = place.file.parent().unwrap_or(Path::new(""));
        let file: PathBuf = dir.join(&member.name);
        let mut inner = place.step(Step::Member(member.name.clone()), 0);
        let (bytes, id) = match open(&file) {
            Ok(opened) => opened,
            Err(why) => {
                let what = format!("its member {} ({}) {why}", member.name, file.display());
                return self.damage(place, Bad::new(member.at, what));
            }
        };
        if !self.open.insert(id) {
            let what = format!("its member {} is being read already", file.display());
            return self.damage(place, Bad::new(member.at, what));
        }
        inner.file = file;
        inner.offset = 0;
        let part = match member.origin {
            // Behind the member's header.
            Some(at) => bytes.slice(at.saturating_add(60), member.size),
            None => Ok(bytes),
        };
        let flow = match part {
            Ok(part) => {
                inner.offset = member.origin.map_or(0, |at| at + 60);
                self.bytes(&inner, &part)
            }
            Err(bad) => self.damage(&inner, bad),
        };
        self.open.remove(&id);
        flow
    }

    /// Bundles, one after the other, with zeros between them.
    fn bundles(&mut self, place: &Place, bytes: &Bytes) -> ControlFlow<()> {
        let mut at = 0;
        let mut number = 0;
        while at < bytes.size() {
            number += 1;
            let inner = place.step(Step::Bundle(number), at);
            let rest = bytes.from(at);
            let is_packed = rest.head(4).is_ok_and(|head| head == b"CCOB");
            let size = if is_packed {
                self.packed(&inner, &rest)?
            } else {
                self.bundle(&inner, &rest)?
            };
            // Without a size, the next magic is looked for.
            let after = at + size.unwrap_or(4).max(4);
            at = match bundle::next(bytes, after) {
                Ok(next) => next.unwrap_or(bytes.size()),
                Err(bad) => {
                    self.damage(place, bad)?;
                    break;
                }
            };
        }
        NEXT
    }

    /// A bundle that is not compressed; its size.
    fn bundle(&mut self, place: &Place, bytes: &Bytes) -> ControlFlow<(), Option<u64>> {
        let bundle = match bundle::read(&mut bytes.reader(), bytes.size()) {
            Ok(bundle) => bundle,
            Err(bad) => {
                self.damage(place, bad)?;
                return ControlFlow::Continue(None);
            }
        };
        let what = What::Bundle(Bundle {
            entries: bundle.entries.iter().map(|e| e.id.clone()).collect(),
            packed: None,
        });
        self.tell(
            place,
            what,
            bytes.slice(0, bundle.end.min(bytes.size())).ok(),
        )?;
        for entry in bundle.in_order() {
            let inner = place.step(step(entry), entry.offset);
            match bytes.slice(entry.offset, entry.size) {
                Ok(part) => self.bytes(&inner, &part)?,
                Err(bad) => self.damage(place, bad)?,
            }
        }
        self.damages(place, bundle.problems)?;
        ControlFlow::Continue(Some(bundle.end))
    }

    /// A compressed bundle; its size.
    fn packed(&mut self, place: &Place, bytes: &Bytes) -> ControlFlow<(), Option<u64>> {
        let header = match packed::read(bytes) {
            Ok(header) => header,
            Err(bad) => {
                self.damage(place, bad)?;
                return ControlFlow::Continue(None);
            }
        };
        let claimed = header.packed;
        let stream = match claimed {
            Some(size) => bytes.slice(header.header, size - header.header),
            None => Ok(bytes.from(header.header)),
        };
        let size = match stream {
            Ok(stream) => self.unpack(place, header.clone(), &stream)?,
            Err(bad) => {
                self.damage(place, bad)?;
                None
            }
        };
        ControlFlow::Continue(claimed.or(size.map(|size| header.header + size)))
    }

    /// Goes through a compressed bundle while it is unpacked; bytes of the compressed stream.
    fn unpack(
        &mut self,
        place: &Place,
        header: Packed,
        stream: &Bytes,
    ) -> ControlFlow<(), Option<u64>> {
        let method = header.method.name();
        let at = header.header;
        let failed = |why: String| Bad::new(at, format!("{method} cannot unpack it: {why}"));
        let unpacked = header.unpacked;
        let mut unpacker = match Unpacker::new(stream, header.method, unpacked) {
            Ok(unpacker) => unpacker,
            Err(error) => {
                self.damage(place, failed(error.to_string()))?;
                return ControlFlow::Continue(None);
            }
        };
        let inside = place.step(Step::Unpacked, 0);
        let bundle = match bundle::read(&mut unpacker, unpacked) {
            Ok(bundle) => bundle,
            Err(bad) => {
                self.damage(&inside, bad)?;
                return ControlFlow::Continue(None);
            }
        };
        let what = What::Bundle(Bundle {
            entries: bundle.entries.iter().map(|e| e.id.clone()).collect(),
            packed: Some(header),
        });
        self.tell(place, what, None)?;
        let mut done = bundle.header;
        for entry in bundle.in_order() {
            let mut part = unpacker.by_ref().take(entry.offset - done);
            let skipped = io::copy(&mut part, &mut io::sink());
            let inner = inside.step(step(entry), entry.offset);
            let part = skipped.and_then(|n| {
                if n < entry.offset - done {
                    return Err(cut_off());
                }
                Ok(unpacker.by_ref().take(entry.size))
            });
            let went = match part {
                Ok(mut part) => self.stream(&inner, &mut part, Some(entry.size))?,
                Err(error) => Err(error),
            };
            if let Err(error) = went {
                self.damage(place, failed(format!("at {:#x}: {error}", entry.offset)))?;
                self.damages(&inside, bundle.problems)?;
                return ControlFlow::Continue(None);
            }
            done = entry.offset + entry.size;
        }
        self.damages(&inside, bundle.problems)?;
        match unpacker.finish(stream) {
            Ok(size) => ControlFlow::Continue(Some(size)),
            Err(why) => {
                self.damage(place, failed(why))?;
                ControlFlow::Continue(None)
            }
        }
    }

    /// Something of `size` bytes, if that is known, that comes as a stream. An error of the stream ends what it is a
    /// part of.
    fn stream(
        &mut self,
        place: &Place,
        mut stream: &mut dyn Read,
        size: Option<u64>,
    ) -> ControlFlow<(), io::Result<()>> {
        let mut head = Vec::new();
        if let Err(error) = (&mut stream).take(64).read_to_end(&mut head) {
            return ControlFlow::Continue(Err(error));
        }
        let target = object::target(&head);
        if let (Some((target, _)), Some(wanted)) = (&target, self.options.wanted)
            && !wanted(target)
        {
            let skipped = io::copy(stream, &mut io::sink());
            let whole = |n: u64| match size {
                Some(size) if head.len() as u64 + n < size => Err(cut_off()),
                _ => Ok(()),
            };
            return ControlFlow::Continue(skipped.and_then(whole));
        }
        let bytes = match (target, self.options.whole) {
            (Some(_), None) => keep(stream, head),
            (_, dir) => {
                let temporary = std::env::temp_dir();
                let mut all = (&head[..]).chain(stream);
                Bytes::unpack(&mut all, dir.unwrap_or(&temporary))
            }
        };
        let bytes = match bytes {
            Ok(bytes) if size.is_none_or(|size| bytes.size() == size) => bytes,
            Ok(_) => return ControlFlow::Continue(Err(cut_off())),
            Err(error) => return ControlFlow::Continue(Err(error)),
        };
        self.bytes(place, &bytes)?;
        ControlFlow::Continue(Ok(()))
    }

    /// Offload binaries, one after the other.
    fn offload(&mut self, place: &Place, bytes: &Bytes) -> ControlFlow<()> {
        let mut at = 0;
        let mut number = 0;
        while at < bytes.size() {
            let rest = bytes.from(at);
            let binary = match offload::read(&rest) {
                Ok(binary) => binary,
                Err(bad) => {
                    // What pads the last one.
                    if rest
                        .head(64)
                        .is_ok_and(|head| head.iter().all(|&byte| byte == 0))
                    {
                        return NEXT;
                    }
                    return self.damage(&place.at(at), bad);
                }
            };
            let here = place.at(at);
            let what = What::OffloadBinary {
                version: binary.version,
                images: binary.images.len(),
            };
            self.tell(&here, what, rest.slice(0, binary.size).ok())?;
            for image in &binary.images {
                number += 1;
                let id = image.id();
                let inner = here.step(Step::Image { number, id }, image.offset);
                match rest.slice(image.offset, image.size) {
                    Ok(part) if part.size() > 0 => self.bytes(&inner, &part)?,
                    Ok(_) => {}
                    Err(bad) => self.damage(&here, bad)?,
                }
            }
            self.damages(&here, binary.problems)?;
            at = (at + binary.size).next_multiple_of(8);
        }
        NEXT
    }

    fn kpack(&mut self, place: &Place, bytes: &Bytes) -> ControlFlow<()> {
        let kpack = match kpack::read(bytes) {
            Ok(kpack) => kpack,
            Err(bad) => return self.damage(place, bad),
        };
        let what = What::Kpack(Kpack {
            group: kpack.group,
            family: kpack.family,
            packed: kpack.packed,
            kernels: kpack.kernels.len(),
        });
        self.tell(place, what, Some(bytes.clone()))?;
        for kernels in kpack.kernels {
            let inner = place.step(
                Step::Kernels {
                    binary: kernels.binary,
                    arch: kernels.arch,
                },
                kernels.at,
            );
            let part = match bytes.slice(kernels.at, kernels.size) {
                Ok(part) => part,
                Err(bad) => {
                    self.damage(place, bad)?;
                    continue;
                }
            };
            if !kernels.packed {
                self.bytes(&inner, &part)?;
                continue;
            }
            let failed =
                |why: &dyn std::fmt::Display| Bad::new(0, format!("zstd cannot unpack it: {why}"));
            let most = packed::most(part.size());
            if let Some(unpacked) = kernels.unpacked.filter(|size| *size > most) {
                let why = format!("{} bytes claim to unpack to {unpacked}", part.size());
                self.damage(&inner, Bad::new(0, why))?;
                continue;
            }
            let most = kernels.unpacked.unwrap_or(most);
            let unpacker = Unpacker::new(&part, packed::Method::Zstd, most);
            let went = match unpacker {
                Ok(mut unpacker) => {
                    let inside = inner.step(Step::Unpacked, 0);
                    let went = self.stream(&inside, &mut unpacker, kernels.unpacked)?;
                    went.and_then(|()| match kernels.unpacked {
                        Some(_) => unpacker.finish(&part).map(drop).map_err(io::Error::other),
                        None => Ok(()),
                    })
                }
                Err(error) => Err(error),
            };
            if let Err(error) = went {
                self.damage(&inner, failed(&error))?;
            }
        }
        self.damages(place, kpack.problems)
    }
}

/// About the memory that something takes when it is held.
fn weight(place: &Place, what: &What) -> u64 {
    let steps = place.steps.iter().map(|step| match step {
        Step::Member(text) | Step::Section(text) => text.len(),
        Step::Entry { id, .. } | Step::Image { id, .. } => id.len(),
        Step::Kernels { binary, arch } => binary.len() + arch.len(),
        Step::Bundle(_) | Step::Unpacked => 0,
    });
    let own = match what {
        What::CodeObject(object) => {
            let kernels = object.kernels.iter().map(|kernel| 80 + kernel.name.len());
            kernels.sum::<usize>() + 256
        }
        What::Bundle(bundle) => bundle.entries.iter().map(|id| 24 + id.len()).sum(),
        What::Damage { why } => why.len(),
        _ => 256,
    };
    let place = place.file.as_os_str().len() + steps.map(|text| 32 + text).sum::<usize>();
    (128 + place + own) as u64
}

/// The name of a section that clang-offload-bundler makes for an entry of an object file.
const BUNDLED: &str = "__CLANG_OFFLOAD_BUNDLE__";

fn is_bundled(section: &str) -> bool {
    section
        .strip_prefix(BUNDLED)
        .is_some_and(|id| !id.starts_with("host"))
}

/// Whether the device code was taken out and put into kpack archives.
fn kpack_took(elf: &Elf) -> bool {
    elf.section(".rocm_kpack_ref").is_some()
}

fn step(entry: &bundle::Entry) -> Step {
    Step::Entry {
        number: entry.number,
        id: entry.id.clone(),
    }
}

fn in_order(mut parts: Vec<(Step, u64, u64)>) -> Vec<(Step, u64, u64)> {
    parts.sort_by_key(|(_, at, _)| *at);
    parts
}

fn machine(machine: u16) -> String {
    match machine {
        3 => "x86".into(),
        20 => "ppc".into(),
        21 => "ppc64".into(),
        40 => "arm".into(),
        62 => "x86-64".into(),
        183 => "aarch64".into(),
        190 => "NVIDIA CUDA".into(),
        243 => "riscv".into(),
        258 => "loongarch".into(),
        other => format!("machine {other}"),
    }
}

fn cut_off() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "it is cut off")
}

/// Keeps a code object's stream but for its code, which tells nothing and is most of it.
fn keep(stream: &mut dyn Read, head: Vec<u8>) -> io::Result<Bytes> {
    let mut keeper = Keeper::default();
    let mut buffer = vec![0; 1 << 18];
    let mut start = head;
    // The program headers follow the header in every code object that a linker made.
    while start.len() < 4096 {
        let most = buffer.len().min(4096 - start.len());
        let n = read_some(stream, &mut buffer[..most])?;
        if n == 0 {
            break;
        }
        start.extend_from_slice(&buffer[..n]);
    }
    let left_out = code(&start);
    keep_but(&mut keeper, &left_out, 0, &start)?;
    let mut at = start.len() as u64;
    loop {
        let n = read_some(stream, &mut buffer)?;
        if n == 0 {
            break;
        }
        keep_but(&mut keeper, &left_out, at, &buffer[..n])?;
        at += n as u64;
    }
    Ok(keeper.finish(at))
}

/// Keeps what of `bytes`, which stand at `at`, is outside of what is left out.
fn keep_but(
    keeper: &mut Keeper,
    left_out: &[(u64, u64)],
    mut at: u64,
    mut bytes: &[u8],
) -> io::Result<()> {
    while !bytes.is_empty() {
        let inside = left_out
            .iter()
            .find(|(start, end)| *start <= at && at < *end);
        let next = match inside {
            Some((_, end)) => *end,
            None => {
                let after = left_out.iter().filter(|(start, _)| *start > at);
                after.map(|(start, _)| *start).min().unwrap_or(u64::MAX)
            }
        };
        let n = (next - at).min(bytes.len() as u64) as usize;
        if inside.is_none() {
            keeper.keep(at, &bytes[..n])?;
        }
        bytes = &bytes[n..];
        at += n as u64;
    }
    Ok(())
}

/// Where the code is, behind the first 4,096 bytes, by the program headers in these.
fn code(start: &[u8]) -> Vec<(u64, u64)> {
    let Ok(elf) = Elf::read(&Bytes::of_memory(start.to_vec())) else {
        return Vec::new();
    };
    let segments = elf.segments.iter();
    segments
        .filter(|segment| segment.p_type == PT_LOAD && segment.p_flags & PF_X != 0)
        .map(|segment| {
            (
                segment.p_offset,
                segment.p_offset.saturating_add(segment.p_filesz),
            )
        })
        .filter(|(at, end)| *at >= start.len() as u64 && at < end)
        .collect()
}
