//! Writes code objects to files, each once. The name has the target and identifies the code object, and is the same in
//! every run.

use crate::bytes::Bytes;
use crate::found::What;
use crate::location::Location;
use crate::object::CodeObject;
use crate::target::Target;
use crate::walk::{Options, walk};
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File, Permissions};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Which code objects to write.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only those with a coverage mapping.
    pub with_coverage: bool,
    /// Only these targets: `gfx90a` matches any features, `gfx90a:xnack+` only this setting. Empty: all.
    pub targets: Vec<String>,
}

impl Filter {
    fn wants(&self, target: &Target) -> bool {
        self.targets.is_empty() || self.targets.iter().any(|wanted| target.is(wanted))
    }
}

/// The contents of the files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Number of code objects, including those that the filter excludes.
    pub objects: usize,
    /// Their target IDs.
    pub targets: BTreeSet<String>,
    /// Number of those that the filter excludes because they have no coverage mapping.
    pub without_coverage: usize,
}

/// A code object that was written.
#[derive(Debug)]
pub struct Extracted {
    pub location: Location,
    pub object: CodeObject,
    pub file: PathBuf,
    pub written: Written,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    Now,
    /// Earlier in this run, or in an earlier run: the file exists and has the same contents.
    Before,
}

/// Writes the code objects in `files` to `dir`, which is created if necessary. Calls `each` with every code object, and
/// with the location and description of every damage.
///
/// # Errors
/// The directory or a file in it cannot be written.
pub fn extract<'a>(
    files: impl IntoIterator<Item = &'a Path>,
    dir: &Path,
    filter: &Filter,
    each: &mut dyn FnMut(Result<Extracted, (Location, String)>),
) -> io::Result<Seen> {
    fs::create_dir_all(dir)?;
    let mut writer = Writer {
        dir,
        names: HashMap::new(),
    };
    let seen = RefCell::new(Seen::default());
    let wanted = |target: &Target| {
        let mut seen = seen.borrow_mut();
        seen.objects += 1;
        seen.targets.insert(target.to_string());
        filter.wants(target)
    };
    let options = Options {
        code: true,
        wanted: Some(&wanted),
        ..Options::default()
    };
    let mut failed = None;
    for file in files {
        walk(file, options, &mut |found| {
            match (found.what, found.bytes) {
                (What::Damage { why }, _) => each(Err((found.location, why))),
                (What::CodeObject(object), Some(_))
                    if filter.with_coverage && object.coverage.is_none() =>
                {
                    seen.borrow_mut().without_coverage += 1;
                }
                (What::CodeObject(object), Some(bytes)) => match writer.write(&object, bytes) {
                    Ok((file, written)) => each(Ok(Extracted {
                        location: found.location,
                        object: *object,
                        file,
                        written,
                    })),
                    Err(error) => {
                        failed = Some(error);
                        return ControlFlow::Break(());
                    }
                },
                _ => {}
            }
            ControlFlow::Continue(())
        });
        if let Some(error) = failed.take() {
            return Err(error);
        }
    }
    Ok(seen.into_inner())
}

struct Writer<'a> {
    dir: &'a Path,
    /// The digests of the files, by name.
    names: HashMap<String, u128>,
}

impl Writer<'_> {
    /// Writes a new file, which is complete or does not exist. The umask applies to its mode.
    fn create(&self, path: &Path, bytes: &Bytes, digest: u128) -> io::Result<()> {
        let mut file = tempfile::Builder::new()
            .prefix(".devprof-")
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(self.dir)?;
        if bytes.copy_to(file.as_file_mut())? != digest {
            return Err(io::Error::other("a code object changed while it was read"));
        }
        file.persist_noclobber(path).map_err(|error| error.error)?;
        Ok(())
    }

    fn write(&mut self, object: &CodeObject, bytes: Bytes) -> io::Result<(PathBuf, Written)> {
        let digest = bytes.digest()?;
        let hash = format!("{digest:032x}");
        let target = object.target.file_name();
        let extension = if object.is_cuda() { "cubin" } else { "co" };
        // Two code objects can have the same build ID. Then the digest is added to the name of the second.
        let names = match &object.build_id {
            Some(id) => vec![
                format!("{target}.{id}.{extension}"),
                format!("{target}.{id}.{hash}.{extension}"),
            ],
            None => vec![format!("{target}.{hash}.{extension}")],
        };
        for name in names {
            let path = self.dir.join(&name);
            match self.names.get(&name) {
                Some(known) if *known == digest => return Ok((path, Written::Before)),
                Some(_) => continue,
                None => {}
            }
            match file_is(&path, digest, object.size) {
                None => {
                    self.create(&path, &bytes, digest)?;
                    self.names.insert(name, digest);
                    return Ok((path, Written::Now));
                }
                Some(Ok(true)) => {
                    self.names.insert(name, digest);
                    return Ok((path, Written::Before));
                }
                Some(Ok(false)) => {}
                Some(Err(error)) => return Err(error),
            }
        }
        let what = format!(
            "cannot write a code object of {target} to {}: different files have its names; choose another directory",
            self.dir.display()
        );
        Err(io::Error::new(io::ErrorKind::AlreadyExists, what))
    }
}

/// Whether the file has these contents. `None` if there is no such file.
fn file_is(path: &Path, digest: u128, size: u64) -> Option<io::Result<bool>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
        Err(error) => return Some(Err(error)),
    };
    let same = || {
        if file.metadata()?.len() != size {
            return Ok(false);
        }
        Ok(Bytes::of_file(file)?.digest()? == digest)
    };
    Some(same())
}
