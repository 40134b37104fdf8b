//! Walks through a file and everything in it, including nested containers. Each format has its own module. Damage to a
//! part is reported, and does not end the walk.

use crate::bytes::Bytes;
use crate::cuda::{self, cubin, fatbin};
use crate::elf::Elf;
use crate::error::Error;
use crate::found::{Bundle, Found, Kpack, Ptx, What};
use crate::kind::Kind;
use crate::location::{Location, Step};
use crate::packed::{Packed, Unpacker};
use crate::target::Target;
use crate::{amd, archive, bundle, host, kpack, offload, packed, profile, without_code};
use profraw::kind::Kind as ProfileKind;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Whether code objects for a target are wanted.
pub type Wanted<'a> = &'a dyn Fn(&Target) -> bool;

/// Options of a walk.
#[derive(Clone, Copy, Default)]
pub struct Options<'a> {
    /// Directory into which compressed code objects are unpacked completely, as temporary files. Without it, and without
    /// `code`, [`Found::bytes`] of these have no code.
    pub unpack_to: Option<&'a Path>,
    /// Keeps the code of compressed code objects as well, in memory or in an unnamed temporary file.
    pub code: bool,
    /// Skips code objects for other targets.
    pub wanted: Option<Wanted<'a>>,
}

/// Limit on the depth of nested containers.
const MAX_DEPTH: usize = 8;

/// Limit on the total size of everything that is found, in bytes ([`Found::weight`]). Real libraries have a few MiB of
/// names, but a compressed file can have more than fits in memory.
const MAX_FOUND: u64 = 256 << 20;

/// Called with everything that is found. It can end the walk.
pub type Each<'a> = &'a mut dyn FnMut(Found) -> ControlFlow<()>;

/// Calls `each` with everything in a file, in the file's order.
pub fn walk(file: &Path, options: Options, each: Each) {
    let mut walk = Walk::new(options, each);
    let location = Location::new(file);
    // Whether `each` ended the walk does not matter here.
    let _ = match open(file) {
        Ok((bytes, id)) => {
            walk.open.insert(id);
            walk.bytes(&location, &bytes)
        }
        Err(why) => walk.damage(&location, Error::new(0, why)),
    };
}

/// Calls `each` with everything in `bytes`. `file`: the path to report as the location.
pub fn walk_bytes(file: &Path, bytes: Bytes, options: Options, each: Each) {
    let _ = Walk::new(options, each).bytes(&Location::new(file), &bytes);
}

/// Device and inode of a file.
type FileId = (u64, u64);

/// Opens a regular file.
fn open(file: &Path) -> Result<(Bytes, FileId), String> {
    let failed = |error: io::Error| format!("cannot be opened: {error}");
    // Opening a pipe would wait for its writer.
    let metadata = std::fs::metadata(file).map_err(failed)?;
    if metadata.is_dir() {
        return Err("a directory; pass its files instead".into());
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
    /// Number of containers around the current bytes.
    depth: usize,
    /// See [`MAX_FOUND`].
    found: u64,
    /// The files that are being read. An archive may name itself.
    open: HashSet<FileId>,
}

const NEXT: ControlFlow<()> = ControlFlow::Continue(());

impl<'a, 'b> Walk<'a, 'b> {
    fn new(options: Options<'a>, each: Each<'b>) -> Self {
        Walk {
            options,
            each,
            depth: 0,
            found: 0,
            open: HashSet::new(),
        }
    }

    fn found(&mut self, location: &Location, what: What, bytes: Option<Bytes>) -> ControlFlow<()> {
        let found = Found {
            location: location.clone(),
            what,
            bytes,
        };
        self.found += found.weight();
        if self.found > MAX_FOUND {
            let why = format!(
                "the file has more than {} MiB of names: the rest is skipped",
                MAX_FOUND >> 20
            );
            let _ = (self.each)(Found {
                what: What::Damage { why },
                bytes: None,
                ..found
            });
            return ControlFlow::Break(());
        }
        (self.each)(found)
    }

    fn damage(&mut self, location: &Location, error: Error) -> ControlFlow<()> {
        let why = error.message;
        self.found(&location.at(error.offset), What::Damage { why }, None)
    }

    fn damages(&mut self, location: &Location, all: Vec<Error>) -> ControlFlow<()> {
        let mut all = all.into_iter();
        all.try_for_each(|error| self.damage(location, error))
    }

    /// A file of any kind.
    fn bytes(&mut self, location: &Location, bytes: &Bytes) -> ControlFlow<()> {
        if self.depth == MAX_DEPTH {
            let what = format!("more than {MAX_DEPTH} nested containers");
            return self.damage(location, Error::new(0, what));
        }
        self.depth += 1;
        let flow = self.by_kind(location, bytes);
        self.depth -= 1;
        flow
    }

    fn by_kind(&mut self, location: &Location, bytes: &Bytes) -> ControlFlow<()> {
        let head = match bytes.head(64) {
            Ok(head) => head,
            Err(error) => return self.damage(location, error),
        };
        let what = match Kind::of(&head) {
            Kind::Elf => return self.elf(location, bytes, &head),
            Kind::Archive => return self.archive(location, bytes),
            Kind::Bundle => return self.bundles(location, bytes),
            Kind::OffloadBinary => return self.offload(location, bytes),
            Kind::FatBinary => return self.fat_binaries(location, bytes),
            Kind::Kpack => return self.kpack(location, bytes),
            Kind::Profile(ProfileKind::Raw {
                bits, big_endian, ..
            }) => {
                let (raw, problem) = profile::raw(bytes, bits, big_endian);
                self.found(location, What::RawProfile(raw), Some(bytes.clone()))?;
                return problem.map_or(NEXT, |error| self.damage(location, error));
            }
            Kind::Profile(ProfileKind::Indexed { version }) => match profile::indexed(version) {
                Ok(profile) => What::Profile(profile),
                Err(error) => return self.damage(location, error),
            },
            Kind::Trace => match profile::trace(bytes) {
                Ok(trace) => What::Trace(trace),
                Err(error) => return self.damage(location, error),
            },
            Kind::Bitcode => What::Bitcode,
            Kind::SpirV => What::SpirV,
            Kind::Unknown => What::Unknown {
                first: head[..head.len().min(16)].to_vec(),
            },
        };
        self.found(location, what, Some(bytes.clone()))
    }

    fn elf(&mut self, location: &Location, bytes: &Bytes, head: &[u8]) -> ControlFlow<()> {
        let target = amd::target(head);
        if let (Some(target), Some(wanted)) = (&target, self.options.wanted)
            && !wanted(target)
        {
            return NEXT;
        }
        let elf = match Elf::read(bytes) {
            Ok(elf) => elf,
            Err(error) => return self.damage(location, error),
        };
        let (object, problems) = match target {
            Some(_) => amd::read(elf),
            None if elf.header.e_machine == cuda::MACHINE => cubin::read(elf),
            None => return self.host(location, elf),
        };
        // A cubin's header does not have all of its target.
        if object.is_cuda()
            && self
                .options
                .wanted
                .is_some_and(|wanted| !wanted(&object.target))
        {
            return NEXT;
        }
        let what = What::CodeObject(Box::new(object));
        self.found(location, what, Some(bytes.clone()))?;
        self.damages(location, problems)
    }

    fn host(&mut self, location: &Location, mut elf: Elf) -> ControlFlow<()> {
        let (host, sections, problems) = host::read(&mut elf);
        self.found(location, What::Host(host), Some(elf.bytes.clone()))?;
        self.damages(location, problems)?;
        let mut end = 0;
        for section in sections {
            let (step, offset) = (section.step, section.offset);
            if offset < end {
                let what = format!("{step} overlaps the section before it");
                self.damage(location, Error::new(offset, what))?;
                continue;
            }
            // A section that extends past the end of the file was reported already.
            let available = elf.bytes.size().saturating_sub(offset);
            let Ok(part) = elf.bytes.slice(offset, section.size.min(available)) else {
                continue;
            };
            end = offset + part.size();
            let inner = location.step(step, offset);
            let is_zero = part
                .head(4096)
                .is_ok_and(|head| head.iter().all(|&byte| byte == 0));
            if part.size() == 0 || is_zero && host::is_in_kpack(&elf) {
                continue;
            }
            self.bytes(&inner, &part)?;
        }
        NEXT
    }

    fn archive(&mut self, location: &Location, bytes: &Bytes) -> ControlFlow<()> {
        let members = match archive::Members::new(bytes) {
            Ok(members) => members,
            Err(error) => return self.damage(location, error),
        };
        let thin = members.thin;
        self.found(location, What::Archive { thin }, Some(bytes.clone()))?;
        for member in members {
            let member = match member {
                Ok(member) => member,
                Err(error) => return self.damage(location, error),
            };
            if thin {
                self.thin_member(location, &member)?;
                continue;
            }
            let inner = location.step(Step::Member(member.name.clone()), member.at);
            match bytes.slice(member.at, member.size) {
                Ok(part) if part.size() > 0 => self.bytes(&inner, &part)?,
                Ok(_) => {}
                Err(error) => self.damage(location, error)?,
            }
        }
        NEXT
    }

    /// A member of a thin archive: a file, or a member of another archive. The name is relative to the thin archive.
    fn thin_member(&mut self, location: &Location, member: &archive::Member) -> ControlFlow<()> {
        let dir = location.file.parent().unwrap_or(Path::new(""));
        let file: PathBuf = dir.join(&member.name);
        let mut inner = location.step(Step::Member(member.name.clone()), 0);
        let (bytes, id) = match open(&file) {
            Ok(opened) => opened,
            Err(why) => {
                let what = format!("member {} ({}): {why}", member.name, file.display());
                return self.damage(location, Error::new(member.at, what));
            }
        };
        if !self.open.insert(id) {
            let what = format!("member {} is already being read", file.display());
            return self.damage(location, Error::new(member.at, what));
        }
        inner.file = file;
        inner.offset = 0;
        let part = match member.origin {
            Some(at) => bytes.slice(at.saturating_add(archive::HEADER), member.size),
            None => Ok(bytes),
        };
        let flow = match part {
            Ok(part) => {
                inner.offset = member.origin.map_or(0, |at| at + archive::HEADER);
                self.bytes(&inner, &part)
            }
            Err(error) => self.damage(&inner, error),
        };
        self.open.remove(&id);
        flow
    }

    /// Bundles, one after another, with zeros between them.
    fn bundles(&mut self, location: &Location, bytes: &Bytes) -> ControlFlow<()> {
        let mut at = 0;
        let mut number = 0;
        while at < bytes.size() {
            number += 1;
            let inner = location.step(Step::Bundle(number), at);
            let rest = bytes.from(at);
            let is_packed = rest.head(4).is_ok_and(|head| head == packed::MAGIC);
            let size = if is_packed {
                self.packed(&inner, &rest)?
            } else {
                self.bundle(&inner, &rest)?
            };
            // If its size is unknown, search for the next magic.
            let after = at + size.unwrap_or(4).max(4);
            at = match bundle::next(bytes, after) {
                Ok(next) => next.unwrap_or(bytes.size()),
                Err(error) => {
                    self.damage(location, error)?;
                    break;
                }
            };
        }
        NEXT
    }

    /// A bundle that is not compressed. Returns its size, if it is known.
    fn bundle(&mut self, location: &Location, bytes: &Bytes) -> ControlFlow<(), Option<u64>> {
        let bundle = match bundle::read(&mut bytes.reader(), bytes.size()) {
            Ok(bundle) => bundle,
            Err(error) => {
                self.damage(location, error)?;
                return ControlFlow::Continue(None);
            }
        };
        let what = What::Bundle(Bundle {
            entries: bundle.entries.iter().map(|e| e.id.clone()).collect(),
            packed: None,
        });
        let all = bytes.slice(0, bundle.end.min(bytes.size()));
        self.found(location, what, all.ok())?;
        for entry in bundle.in_order() {
            let inner = location.step(step(entry), entry.offset);
            match bytes.slice(entry.offset, entry.size) {
                Ok(part) => self.bytes(&inner, &part)?,
                Err(error) => self.damage(location, error)?,
            }
        }
        self.damages(location, bundle.problems)?;
        ControlFlow::Continue(Some(bundle.end))
    }

    /// A compressed bundle. Returns its size, if it is known.
    fn packed(&mut self, location: &Location, bytes: &Bytes) -> ControlFlow<(), Option<u64>> {
        let header = match packed::read(bytes) {
            Ok(header) => header,
            Err(error) => {
                self.damage(location, error)?;
                return ControlFlow::Continue(None);
            }
        };
        let claimed = header.packed;
        let stream = match claimed {
            Some(size) => bytes.slice(header.header, size - header.header),
            None => Ok(bytes.from(header.header)),
        };
        let size = match stream {
            Ok(stream) => self.unpack(location, header.clone(), &stream)?,
            Err(error) => {
                self.damage(location, error)?;
                None
            }
        };
        ControlFlow::Continue(claimed.or(size.map(|size| header.header + size)))
    }

    /// Walks through a compressed bundle while it is unpacked. Returns the size of the compressed stream.
    fn unpack(
        &mut self,
        location: &Location,
        header: Packed,
        stream: &Bytes,
    ) -> ControlFlow<(), Option<u64>> {
        let method = header.method.name();
        let at = header.header;
        let failed = |why: String| Error::new(at, format!("cannot decompress ({method}): {why}"));
        let unpacked = header.unpacked;
        let mut unpacker = match Unpacker::new(stream, header.method, unpacked) {
            Ok(unpacker) => unpacker,
            Err(error) => {
                self.damage(location, failed(error.to_string()))?;
                return ControlFlow::Continue(None);
            }
        };
        let inside = location.step(Step::Unpacked, 0);
        let bundle = match bundle::read(&mut unpacker, unpacked) {
            Ok(bundle) => bundle,
            Err(error) => {
                self.damage(&inside, error)?;
                return ControlFlow::Continue(None);
            }
        };
        let what = What::Bundle(Bundle {
            entries: bundle.entries.iter().map(|e| e.id.clone()).collect(),
            packed: Some(header),
        });
        self.found(location, what, None)?;
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
            let result = match part {
                Ok(mut part) => self.stream(&inner, &mut part, Some(entry.size))?,
                Err(error) => Err(error),
            };
            if let Err(error) = result {
                self.damage(location, failed(format!("at {:#x}: {error}", entry.offset)))?;
                self.damages(&inside, bundle.problems)?;
                return ControlFlow::Continue(None);
            }
            done = entry.offset + entry.size;
        }
        self.damages(&inside, bundle.problems)?;
        match unpacker.finish(stream) {
            Ok(size) => ControlFlow::Continue(Some(size)),
            Err(why) => {
                self.damage(location, failed(why))?;
                ControlFlow::Continue(None)
            }
        }
    }

    /// A file that is read from a stream. `size`: in bytes, if it is known. Returns the stream's error, after which the rest
    /// of its container cannot be read.
    fn stream(
        &mut self,
        location: &Location,
        mut stream: &mut dyn Read,
        size: Option<u64>,
    ) -> ControlFlow<(), io::Result<()>> {
        let mut head = Vec::new();
        if let Err(error) = (&mut stream).take(64).read_to_end(&mut head) {
            return ControlFlow::Continue(Err(error));
        }
        let target = amd::target(&head);
        if let (Some(target), Some(wanted)) = (&target, self.options.wanted)
            && !wanted(target)
        {
            let skipped = io::copy(stream, &mut io::sink());
            let check = |n: u64| match size {
                Some(size) if head.len() as u64 + n < size => Err(cut_off()),
                _ => Ok(()),
            };
            return ControlFlow::Continue(skipped.and_then(check));
        }
        let bytes = match (target, self.options.unpack_to) {
            (Some(_), None) => without_code::read(stream, head, self.options.code),
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
        self.bytes(location, &bytes)?;
        ControlFlow::Continue(Ok(()))
    }

    /// Offload binaries, one after another.
    fn offload(&mut self, location: &Location, bytes: &Bytes) -> ControlFlow<()> {
        let mut at = 0;
        let mut number = 0;
        while at < bytes.size() {
            let rest = bytes.from(at);
            let binary = match offload::read(&rest) {
                Ok(binary) => binary,
                Err(error) => {
                    // Padding after the last one.
                    if rest
                        .head(64)
                        .is_ok_and(|head| head.iter().all(|&byte| byte == 0))
                    {
                        return NEXT;
                    }
                    return self.damage(&location.at(at), error);
                }
            };
            let here = location.at(at);
            let what = What::OffloadBinary {
                version: binary.version,
                images: binary.images.len(),
            };
            self.found(&here, what, rest.slice(0, binary.size).ok())?;
            for image in &binary.images {
                number += 1;
                let id = image.id();
                let inner = here.step(Step::Image { number, id }, image.offset);
                match rest.slice(image.offset, image.size) {
                    Ok(part) if image.kind == "ptx" => {
                        self.ptx(&inner, image.arch.clone(), part)?
                    }
                    Ok(part) if part.size() > 0 => self.bytes(&inner, &part)?,
                    Ok(_) => {}
                    Err(error) => self.damage(&here, error)?,
                }
            }
            self.damages(&here, binary.problems)?;
            at = (at + binary.size).next_multiple_of(8);
        }
        NEXT
    }

    /// PTX of an offload binary.
    fn ptx(&mut self, location: &Location, target: String, bytes: Bytes) -> ControlFlow<()> {
        let ptx = Ptx {
            target,
            version: String::new(),
            size: bytes.size(),
        };
        self.found(location, What::Ptx(ptx), Some(bytes))
    }

    /// Fat binaries of CUDA, one after another.
    fn fat_binaries(&mut self, location: &Location, bytes: &Bytes) -> ControlFlow<()> {
        let mut at = 0;
        let mut number = 0;
        while at < bytes.size() {
            number += 1;
            let inner = location.step(Step::FatBinary(number), at);
            let rest = bytes.from(at);
            let size = match fatbin::read(&rest) {
                Ok(header) => {
                    let part = rest.slice(0, header.size);
                    self.fat_binary(&inner, &part.unwrap_or(rest), header.entries)?;
                    header.size
                }
                Err(error) => {
                    self.damage(&inner, error)?;
                    // Search for the next magic.
                    8
                }
            };
            at = match fatbin::next(bytes, at + size) {
                Ok(next) => next.unwrap_or(bytes.size()),
                Err(error) => return self.damage(location, error),
            };
        }
        NEXT
    }

    /// `bytes`: one fat binary. `at`: the offset of its first entry.
    fn fat_binary(&mut self, location: &Location, bytes: &Bytes, mut at: u64) -> ControlFlow<()> {
        let mut entries = Vec::new();
        let mut problem = None;
        while at < bytes.size() {
            match fatbin::entry(bytes, at) {
                Ok(entry) => {
                    at = entry.next;
                    entries.push(entry);
                }
                Err(error) => {
                    problem = Some(error);
                    break;
                }
            }
        }
        let what = What::FatBinary {
            entries: entries.len(),
        };
        self.found(location, what, Some(bytes.clone()))?;
        for (n, entry) in entries.into_iter().enumerate() {
            let step = Step::Entry {
                number: n as u32 + 1,
                id: fatbin::target(&entry),
            };
            let inner = location.step(step, entry.at);
            match bytes.slice(entry.at, entry.size) {
                Ok(part) => self.fat_entry(&inner, entry, part)?,
                Err(error) => self.damage(location, error)?,
            }
        }
        problem.map_or(NEXT, |error| self.damage(location, error))
    }

    /// `bytes`: the contents of the entry.
    fn fat_entry(
        &mut self,
        location: &Location,
        entry: fatbin::Entry,
        bytes: Bytes,
    ) -> ControlFlow<()> {
        match (entry.kind, entry.packed) {
            (fatbin::Kind::Ptx, packed) => {
                let (major, minor) = entry.version;
                let ptx = Ptx {
                    target: fatbin::target(&entry),
                    version: format!("{major}.{minor}"),
                    size: packed.map_or(bytes.size(), |packed| packed.unpacked),
                };
                let bytes = packed.is_none().then_some(bytes);
                self.found(location, What::Ptx(ptx), bytes)
            }
            (fatbin::Kind::Other(kind), _) => {
                let why =
                    format!("entry of the unknown kind {kind}; 1 (PTX) and 2 (cubin) are known");
                self.damage(location, Error::new(0, why))
            }
            (fatbin::Kind::Cubin, None) => self.bytes(location, &bytes),
            (fatbin::Kind::Cubin, Some(packed)) => match fatbin::unpack(&bytes, packed) {
                Ok(unpacked) => self.bytes(&location.step(Step::Unpacked, 0), &unpacked),
                Err(error) => self.damage(location, error),
            },
        }
    }

    fn kpack(&mut self, location: &Location, bytes: &Bytes) -> ControlFlow<()> {
        let kpack = match kpack::read(bytes) {
            Ok(kpack) => kpack,
            Err(error) => return self.damage(location, error),
        };
        let what = What::Kpack(Kpack {
            group: kpack.group,
            family: kpack.family,
            packed: kpack.packed,
            kernels: kpack.kernels.len(),
        });
        self.found(location, what, Some(bytes.clone()))?;
        for kernels in kpack.kernels {
            let inner = location.step(
                Step::Kernels {
                    binary: kernels.binary,
                    arch: kernels.arch,
                },
                kernels.at,
            );
            let part = match bytes.slice(kernels.at, kernels.size) {
                Ok(part) => part,
                Err(error) => {
                    self.damage(location, error)?;
                    continue;
                }
            };
            if !kernels.packed {
                self.bytes(&inner, &part)?;
                continue;
            }
            let failed = |why: &dyn std::fmt::Display| {
                Error::new(0, format!("cannot decompress (zstd): {why}"))
            };
            let limit = packed::max_unpacked(part.size());
            if let Some(unpacked) = kernels.unpacked.filter(|size| *size > limit) {
                let why = format!("{} bytes claim to unpack to {unpacked}", part.size());
                self.damage(&inner, Error::new(0, why))?;
                continue;
            }
            let size = kernels.unpacked.unwrap_or(limit);
            let unpacker = Unpacker::new(&part, packed::Method::Zstd, size);
            let result = match unpacker {
                Ok(mut unpacker) => {
                    let inside = inner.step(Step::Unpacked, 0);
                    let result = self.stream(&inside, &mut unpacker, kernels.unpacked)?;
                    result.and_then(|()| match kernels.unpacked {
                        Some(_) => unpacker.finish(&part).map(drop).map_err(io::Error::other),
                        None => Ok(()),
                    })
                }
                Err(error) => Err(error),
            };
            if let Err(error) = result {
                self.damage(&inner, failed(&error))?;
            }
        }
        self.damages(location, kpack.problems)
    }
}

fn step(entry: &bundle::Entry) -> Step {
    Step::Entry {
        number: entry.number,
        id: entry.id.clone(),
    }
}

fn cut_off() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "it is truncated")
}
