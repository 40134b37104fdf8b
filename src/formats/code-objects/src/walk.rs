//! Walks through a file and everything in it, including nested containers. Each format has its own module. Damage to a
//! part is reported, and does not end the walk.

use crate::budget::Budget;
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
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Whether code objects for a target are wanted.
pub type Wanted<'a> = &'a dyn Fn(&Target) -> bool;

/// Options of a walk.
#[derive(Clone, Copy, Default)]
pub struct Options<'a> {
    /// Keeps the code of compressed code objects as well, in memory or in an unnamed temporary file. Otherwise
    /// [`Found::bytes`] of these have no code.
    pub code: bool,
    /// Skips code objects for other targets.
    pub wanted: Option<Wanted<'a>>,
    /// Unpacks compressed PTX for these architectures (see [`Ptx::target`]). Otherwise it has no [`Found::bytes`].
    pub ptx: Option<&'a dyn Fn(&str) -> bool>,
}

/// Called with everything that is found. It can end the walk.
pub type Each<'a> = &'a mut dyn FnMut(Found) -> ControlFlow<()>;

/// Calls `each` with everything in a file, in the file's order.
pub fn walk(file: &Path, options: Options, each: Each) {
    let location = Location::new(file);
    // Whether `each` ended the walk does not matter here.
    let _ = match open(file) {
        Ok((bytes, id)) => {
            let mut walk = Walk::new(bytes.size(), options, each);
            walk.files.insert(id, 0);
            walk.bytes(&location, &bytes)
        }
        Err(why) => Walk::new(0, options, each).damage(&location, Error::new(0, why)),
    };
}

/// Calls `each` with everything in `bytes`. `file`: the path to report as the location.
pub fn walk_bytes(file: &Path, bytes: Bytes, options: Options, each: Each) {
    let _ = Walk::new(bytes.size(), options, each).bytes(&Location::new(file), &bytes);
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
    /// Shared with the unpackers of the containers around the current bytes.
    budget: Rc<Budget>,
    /// The files that were opened, and how many bytes of each may still be read as members of thin archives.
    files: HashMap<FileId, u64>,
}

/// Why the rest of a part is not read.
enum Stop {
    /// `each` ended the walk.
    Ended,
    /// It is damaged. The offset is in the part.
    Damaged(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Damaged(error)
    }
}

type Walked<T = ()> = Result<T, Stop>;

impl<'a, 'b> Walk<'a, 'b> {
    /// `size`: of the file, in bytes.
    fn new(size: u64, options: Options<'a>, each: Each<'b>) -> Self {
        Walk {
            options,
            each,
            depth: 0,
            budget: Rc::new(Budget::new(size)),
            files: HashMap::new(),
        }
    }

    fn found(&mut self, location: &Location, what: What, bytes: Option<Bytes>) -> Walked {
        let found = Found {
            location: location.clone(),
            what,
            bytes,
        };
        if let Err(why) = self.budget.found.take(found.weight()) {
            let why = format!("the file has {why}: the rest is skipped");
            let _ = (self.each)(Found {
                what: What::Damage { why },
                bytes: None,
                ..found
            });
            return Err(Stop::Ended);
        }
        match (self.each)(found) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Stop::Ended),
        }
    }

    fn damage(&mut self, location: &Location, error: Error) -> Walked {
        let why = error.message;
        self.found(&location.at(error.offset), What::Damage { why }, None)
    }

    fn damages(&mut self, location: &Location, all: Vec<Error>) -> Walked {
        let mut all = all.into_iter();
        all.try_for_each(|error| self.damage(location, error))
    }

    /// Reports damage that has ended a part. The caller goes on after the part, whose result is `None`.
    fn after_damage<T>(&mut self, location: &Location, result: Walked<T>) -> Walked<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(Stop::Damaged(error)) => self.damage(location, error).map(|()| None),
            Err(Stop::Ended) => Err(Stop::Ended),
        }
    }

    /// A file of any kind.
    fn bytes(&mut self, location: &Location, bytes: &Bytes) -> Walked {
        if self.depth == Budget::DEPTH {
            return self.damage(
                location,
                error!(0; "more than {} nested containers", Budget::DEPTH),
            );
        }
        self.depth += 1;
        let walked = self.by_kind(location, bytes);
        self.depth -= 1;
        self.after_damage(location, walked).map(drop)
    }

    fn by_kind(&mut self, location: &Location, bytes: &Bytes) -> Walked {
        let head = bytes.head(64)?;
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
                return problem.map_or(Ok(()), |error| Err(error.into()));
            }
            Kind::Profile(ProfileKind::Indexed { version }) => {
                What::Profile(profile::indexed(version)?)
            }
            Kind::Trace => What::Trace(profile::trace(bytes)?),
            Kind::Bitcode => What::Bitcode,
            Kind::SpirV => What::SpirV,
            Kind::Unknown => What::Unknown {
                first: head[..head.len().min(16)].to_vec(),
            },
        };
        self.found(location, what, Some(bytes.clone()))
    }

    fn wants(&self, target: &Target) -> bool {
        self.options.wanted.is_none_or(|wanted| wanted(target))
    }

    fn elf(&mut self, location: &Location, bytes: &Bytes, head: &[u8]) -> Walked {
        let target = amd::target(head);
        if target.as_ref().is_some_and(|target| !self.wants(target)) {
            return Ok(());
        }
        let elf = Elf::read(bytes)?;
        let (object, problems) = match target {
            Some(_) => amd::read(elf),
            None if elf.header.e_machine == cuda::MACHINE => cubin::read(elf),
            None => return self.host(location, elf),
        };
        // A cubin's header does not have all of its target.
        if object.is_cuda() && !self.wants(&object.target) {
            return Ok(());
        }
        let what = What::CodeObject(Box::new(object));
        self.found(location, what, Some(bytes.clone()))?;
        self.damages(location, problems)
    }

    fn host(&mut self, location: &Location, mut elf: Elf) -> Walked {
        let (host, sections, problems) = host::read(&mut elf);
        self.found(location, What::Host(host), Some(elf.bytes.clone()))?;
        self.damages(location, problems)?;
        let mut end = 0;
        for section in sections {
            let (step, offset) = (section.step, section.offset);
            if offset < end {
                self.damage(
                    location,
                    error!(offset; "{step} overlaps the section before it"),
                )?;
                continue;
            }
            // A section that extends past the end of the file was reported already.
            let available = elf.bytes.size().saturating_sub(offset);
            let Ok(part) = elf.bytes.slice(offset, section.size.min(available)) else {
                continue;
            };
            end = offset + part.size();
            let inner = location.step(step, offset);
            if part.size() == 0 || is_zero(&part, 4096) && host::is_in_kpack(&elf) {
                continue;
            }
            self.bytes(&inner, &part)?;
        }
        Ok(())
    }

    /// A part of a container at `location`. An empty one is skipped.
    fn part(
        &mut self,
        location: &Location,
        inner: &Location,
        part: Result<Bytes, Error>,
    ) -> Walked {
        match part {
            Ok(part) if part.size() > 0 => self.bytes(inner, &part),
            Ok(_) => Ok(()),
            Err(error) => self.damage(location, error),
        }
    }

    fn archive(&mut self, location: &Location, bytes: &Bytes) -> Walked {
        let members = archive::Members::new(bytes)?;
        let thin = members.thin;
        self.found(location, What::Archive { thin }, Some(bytes.clone()))?;
        for member in members {
            let member = member?;
            if thin {
                self.thin_member(location, &member)?;
                continue;
            }
            let inner = location.step(Step::Member(member.name.clone()), member.at);
            self.part(location, &inner, bytes.slice(member.at, member.size))?;
        }
        Ok(())
    }

    /// A member of a thin archive: a file, or a member of another archive. The name is relative to the thin archive.
    fn thin_member(&mut self, location: &Location, member: &archive::Member) -> Walked {
        let dir = location.file.parent().unwrap_or(Path::new(""));
        let file: PathBuf = dir.join(&member.name);
        match self.open_member(&file, member) {
            Ok((part, offset)) => {
                let mut inner = location.step(Step::Member(member.name.clone()), 0);
                inner.file = file;
                inner.offset = offset;
                self.bytes(&inner, &part)
            }
            Err(why) => {
                let (name, file) = (&member.name, file.display());
                self.damage(location, error!(member.at; "member {name} ({file}): {why}"))
            }
        }
    }

    /// The contents of a member of a thin archive, and their offset in the file. Each byte of a file is read once, so that
    /// a small archive cannot name a large file again and again.
    fn open_member(
        &mut self,
        file: &Path,
        member: &archive::Member,
    ) -> Result<(Bytes, u64), String> {
        let (bytes, id) = open(file)?;
        let (part, offset) = match member.origin {
            Some(at) => {
                let offset = at.saturating_add(archive::HEADER);
                let part = bytes.slice(offset, member.size);
                (part.map_err(|error| error.message)?, offset)
            }
            None => (bytes.clone(), 0),
        };
        let is_new = !self.files.contains_key(&id);
        let left = self.files.entry(id).or_insert(bytes.size());
        let Some(rest) = left.checked_sub(part.size()) else {
            return Err("was read already, as another member or as the archive itself".into());
        };
        self.budget.members.take(part.size())?;
        *left = rest;
        if is_new {
            self.budget.add_file(bytes.size());
        }
        Ok((part, offset))
    }

    /// Bundles, one after another, with zeros between them.
    fn bundles(&mut self, location: &Location, bytes: &Bytes) -> Walked {
        let mut at = 0;
        let mut number = 0;
        while at < bytes.size() {
            number += 1;
            let inner = location.step(Step::Bundle(number), at);
            let rest = bytes.from(at);
            let is_packed = rest.head(4).is_ok_and(|head| head == packed::MAGIC);
            let size = if is_packed {
                self.packed(&inner, &rest)
            } else {
                self.bundle(&inner, &rest).map(Some)
            };
            // If its size is unknown, search for the next magic.
            let size = self.after_damage(&inner, size)?.flatten();
            let after = at + size.unwrap_or(4).max(4);
            at = bundle::next(bytes, after)?.unwrap_or(bytes.size());
        }
        Ok(())
    }

    /// A bundle that is not compressed. Returns its size.
    fn bundle(&mut self, location: &Location, bytes: &Bytes) -> Walked<u64> {
        let bundle = bundle::read(&mut bytes.reader(), bytes.size())?;
        let what = What::Bundle(Bundle {
            entries: bundle.entries.iter().map(|e| e.id.clone()).collect(),
            packed: None,
        });
        let all = bytes.slice(0, bundle.end.min(bytes.size()));
        self.found(location, what, all.ok())?;
        for entry in bundle.in_order() {
            let inner = location.step(step(entry), entry.offset);
            self.part(location, &inner, bytes.slice(entry.offset, entry.size))?;
        }
        self.damages(location, bundle.problems)?;
        Ok(bundle.end)
    }

    /// Checks that the compressed data at a location are not in too many other compressed data.
    fn check_nesting(&self, location: &Location) -> Result<(), Error> {
        let steps = location.steps.iter();
        if steps.filter(|step| **step == Step::Unpacked).count() < Budget::UNPACKED_DEPTH {
            return Ok(());
        }
        let max = Budget::UNPACKED_DEPTH;
        Err(error!(0; "more than {max} nested compressed containers"))
    }

    /// A compressed bundle. Returns its size, if it is known.
    fn packed(&mut self, location: &Location, bytes: &Bytes) -> Walked<Option<u64>> {
        self.check_nesting(location)?;
        let header = packed::read(bytes)?;
        let (start, claimed) = (header.header, header.packed);
        let stream = match claimed {
            // `read` has compared it with the size of the data.
            Some(size) => bytes.slice(start, size - start)?,
            None => bytes.from(start),
        };
        let size = self.unpack(location, header, &stream);
        let size = self.after_damage(location, size)?.flatten();
        Ok(claimed.or(size.map(|size| start + size)))
    }

    /// Walks through a compressed bundle while it is unpacked. Returns the size of the compressed stream.
    fn unpack(
        &mut self,
        location: &Location,
        header: Packed,
        stream: &Bytes,
    ) -> Walked<Option<u64>> {
        let method = header.method.name();
        let at = header.header;
        let failed = |why: String| error!(at; "cannot decompress ({method}): {why}");
        let unpacked = header.unpacked;
        let budget = self.budget.clone();
        let unpacker = Unpacker::new(stream, header.method, unpacked, &budget.unpacked);
        let mut unpacker = unpacker.map_err(failed)?;
        let inside = location.step(Step::Unpacked, 0);
        let bundle = bundle::read(&mut unpacker, unpacked).map_err(Stop::Damaged);
        let Some(bundle) = self.after_damage(&inside, bundle)? else {
            return Ok(None);
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
                return Ok(None);
            }
            done = entry.offset + entry.size;
        }
        self.damages(&inside, bundle.problems)?;
        Ok(Some(unpacker.finish(stream).map_err(failed)?))
    }

    /// A file that is read from a stream. `size`: in bytes, if it is known. Returns the stream's error, after which the rest
    /// of its container cannot be read.
    fn stream(
        &mut self,
        location: &Location,
        mut stream: &mut dyn Read,
        size: Option<u64>,
    ) -> Walked<io::Result<()>> {
        let mut head = Vec::new();
        if let Err(error) = (&mut stream).take(64).read_to_end(&mut head) {
            return Ok(Err(error));
        }
        let target = amd::target(&head);
        let is_unknown = matches!(Kind::of(&head), Kind::Unknown);
        if is_unknown || target.as_ref().is_some_and(|target| !self.wants(target)) {
            let skipped = io::copy(stream, &mut io::sink());
            let check = |n: u64| match size {
                Some(size) if head.len() as u64 + n < size => Err(cut_off()),
                _ => Ok(()),
            };
            let skipped = skipped.and_then(check);
            if is_unknown && skipped.is_ok() {
                self.bytes(location, &Bytes::of_memory(head))?;
            }
            return Ok(skipped);
        }
        let keep = target.is_none() || self.options.code;
        let bytes = match without_code::read(stream, head, keep) {
            Ok(bytes) if size.is_none_or(|size| bytes.size() == size) => bytes,
            Ok(_) => return Ok(Err(cut_off())),
            Err(error) => return Ok(Err(error)),
        };
        self.bytes(location, &bytes)?;
        Ok(Ok(()))
    }

    /// Offload binaries, one after another.
    fn offload(&mut self, location: &Location, bytes: &Bytes) -> Walked {
        let mut at = 0;
        let mut number = 0;
        while at < bytes.size() {
            let rest = bytes.from(at);
            let binary = match offload::read(&rest) {
                Ok(binary) => binary,
                // Padding after the last one.
                Err(_) if is_zero(&rest, 64) => return Ok(()),
                Err(error) => return Err(error.shifted(at).into()),
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
                    part => self.part(&here, &inner, part)?,
                }
            }
            self.damages(&here, binary.problems)?;
            at = (at + binary.size).next_multiple_of(8);
        }
        Ok(())
    }

    /// PTX of an offload binary.
    fn ptx(&mut self, location: &Location, target: String, bytes: Bytes) -> Walked {
        let ptx = Ptx {
            target,
            version: String::new(),
            size: bytes.size(),
        };
        self.found(location, What::Ptx(ptx), Some(bytes))
    }

    /// Fat binaries of CUDA, one after another.
    fn fat_binaries(&mut self, location: &Location, bytes: &Bytes) -> Walked {
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
            at = fatbin::next(bytes, at + size)?.unwrap_or(bytes.size());
        }
        Ok(())
    }

    /// `bytes`: one fat binary. `at`: the offset of its first entry.
    fn fat_binary(&mut self, location: &Location, bytes: &Bytes, mut at: u64) -> Walked {
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
                Ok(part) => {
                    let walked = self.fat_entry(&inner, entry, part);
                    self.after_damage(&inner, walked)?;
                }
                Err(error) => self.damage(location, error)?,
            }
        }
        problem.map_or(Ok(()), |error| self.damage(location, error))
    }

    /// `bytes`: the contents of the entry.
    fn fat_entry(&mut self, location: &Location, entry: fatbin::Entry, bytes: Bytes) -> Walked {
        match (entry.kind, entry.packed) {
            (fatbin::Kind::Ptx, packed) => {
                let (major, minor) = entry.version;
                let ptx = Ptx {
                    target: fatbin::target(&entry),
                    version: format!("{major}.{minor}"),
                    size: packed.map_or(bytes.size(), |packed| packed.unpacked),
                };
                let bytes = match packed {
                    None => Some(bytes),
                    Some(packed) if self.options.ptx.is_some_and(|wanted| wanted(&ptx.target)) => {
                        self.check_nesting(location)?;
                        Some(fatbin::unpack(&bytes, packed, &self.budget.unpacked)?)
                    }
                    Some(_) => None,
                };
                self.found(location, What::Ptx(ptx), bytes)
            }
            (fatbin::Kind::Other(kind), _) => {
                let why =
                    format!("entry of the unknown kind {kind}; 1 (PTX) and 2 (cubin) are known");
                Err(Error::new(0, why).into())
            }
            (fatbin::Kind::Cubin, None) => self.bytes(location, &bytes),
            (fatbin::Kind::Cubin, Some(packed)) => {
                self.check_nesting(location)?;
                let unpacked = fatbin::unpack(&bytes, packed, &self.budget.unpacked)?;
                self.bytes(&location.step(Step::Unpacked, 0), &unpacked)
            }
        }
    }

    fn kpack(&mut self, location: &Location, bytes: &Bytes) -> Walked {
        let kpack = kpack::read(bytes)?;
        let what = What::Kpack(Kpack {
            group: kpack.group,
            family: kpack.family,
            packed: kpack.packed,
            kernels: kpack.kernels.len(),
        });
        self.found(location, what, Some(bytes.clone()))?;
        for kernels in kpack.kernels {
            let step = Step::Kernels {
                binary: kernels.binary.clone(),
                arch: kernels.arch.clone(),
            };
            let inner = location.step(step, kernels.at);
            match bytes.slice(kernels.at, kernels.size) {
                Ok(part) => {
                    let walked = self.kernels(&inner, &kernels, &part);
                    self.after_damage(&inner, walked)?;
                }
                Err(error) => self.damage(location, error)?,
            }
        }
        self.damages(location, kpack.problems)
    }

    /// `bytes`: one code object of a kpack archive.
    fn kernels(&mut self, location: &Location, kernels: &kpack::Kernels, bytes: &Bytes) -> Walked {
        if !kernels.packed {
            return self.bytes(location, bytes);
        }
        self.check_nesting(location)?;
        let failed = |why: String| error!(0; "cannot decompress (zstd): {why}");
        let budget = self.budget.clone();
        let limit = &budget.unpacked;
        let size = kernels.unpacked.unwrap_or(limit.left());
        let unpacker = Unpacker::new(bytes, packed::Method::Zstd, size, limit);
        let mut unpacker = unpacker.map_err(failed)?;
        let inside = location.step(Step::Unpacked, 0);
        let result = self.stream(&inside, &mut unpacker, kernels.unpacked)?;
        result.map_err(|error| failed(error.to_string()))?;
        if kernels.unpacked.is_some() {
            unpacker.finish(bytes).map_err(failed)?;
        }
        Ok(())
    }
}

fn step(entry: &bundle::Entry) -> Step {
    Step::Entry {
        number: entry.number,
        id: entry.id.clone(),
    }
}

/// Whether the first `size` bytes are zeros.
fn is_zero(bytes: &Bytes, size: u64) -> bool {
    bytes
        .head(size)
        .is_ok_and(|head| head.iter().all(|&byte| byte == 0))
}

fn cut_off() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "it is truncated")
}
