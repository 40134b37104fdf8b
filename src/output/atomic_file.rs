//! Last stage: where a profile goes, and how it gets there: whole, or not at all.

use crate::pattern::DEFAULT;
use crate::room::NoRoom;
use crate::{host, report, room};
use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// `path` with the architecture (and, from the second code object of one on, its number) before the file's name:
/// `dir/<arch>[.<n>].<basename>`, as `__llvm_write_custom_profile` puts the target there.
pub fn prefixed(path: &Path, arch: &str, n: usize) -> PathBuf {
    let path = path.as_os_str().as_bytes();
    let slash = path.iter().rposition(|&byte| byte == b'/');
    let (directory, name) = path.split_at(slash.map_or(0, |at| at + 1));
    let mut prefixed = directory.to_vec();
    prefixed.extend(arch.split(':').next().unwrap_or(arch).bytes());
    if n > 0 {
        prefixed.extend(format!(".{n}").bytes());
    }
    prefixed.push(b'.');
    prefixed.extend(match name {
        [] => DEFAULT.as_bytes(),
        name => name,
    });
    PathBuf::from(OsString::from_vec(prefixed))
}

/// Why a profile could not be written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot make the directory {0}: {1}")]
    Directory(PathBuf, std::io::Error),
    #[error("cannot write {0}: {1}")]
    Write(PathBuf, std::io::Error),
    #[error("cannot read {0}, which the profile is to be added to: {1}")]
    Read(PathBuf, std::io::Error),
    #[error("{0} is no regular file; name one in LLVM_PROFILE_FILE")]
    NoFile(PathBuf),
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
}

/// Whether there can be a file of this name, or beside it. Not where it is /dev/null, under whatever name. Another device
/// is refused, and a link to something that is no file, as /dev/stdout is: nobody looks for files beside it. Beside a
/// pipe of its own name there can be some.
pub fn is_wanted(path: &Path) -> Result<bool, Error> {
    let Ok(metadata) = std::fs::metadata(path) else {
        return Ok(true);
    };
    let kind = metadata.file_type();
    if kind.is_char_device() && metadata.rdev() == libc::makedev(1, 3) {
        return Ok(false);
    }
    let device = kind.is_char_device() || kind.is_block_device();
    let led = !kind.is_file() && !kind.is_dir() && path.is_symlink();
    match device || led {
        true => Err(Error::NoFile(path.into())),
        false => Ok(true),
    }
}

/// Where a file of this name is, or is to be made: LLVM writes through links. Fails where something else is than a file.
fn followed(path: &Path) -> Result<PathBuf, Error> {
    let mut file = path.to_owned();
    // As many as the kernel follows.
    for _ in 0..40 {
        match std::fs::read_link(&file) {
            Ok(target) => file = directory_of(&file).join(target),
            Err(_) => {
                let kind = std::fs::symlink_metadata(&file).map(|metadata| metadata.file_type());
                return match kind.is_ok_and(|kind| !kind.is_file() && !kind.is_dir()) {
                    true => Err(Error::NoFile(file)),
                    false => Ok(file),
                };
            }
        }
    }
    let error = std::io::Error::from_raw_os_error(libc::ELOOP);
    Err(Error::Write(path.into(), error))
}

/// Writes `bytes` to `path`: first under a hidden name beside it, then renamed, so that the final name always has a
/// whole file. Missing directories are made, as LLVM does.
pub fn write(path: &Path, bytes: &[u8]) -> Result<FileId, Error> {
    let target = followed(path)?;
    let directory = directory_of(&target);
    let create = || hidden_file(directory);
    let failed = |e| Error::Write(path.into(), e);
    host::allows_file_size(bytes.len() as u64).map_err(failed)?;
    let mut file = match create() {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            make_directory(directory)?;
            create()
        }
        made => made,
    }
    .map_err(failed)?;
    file.as_file_mut().write_all(bytes).map_err(failed)?;
    let id = FileId::of(&file.as_file().metadata().map_err(failed)?);
    file.persist(&target).map_err(|e| failed(e.error))?;
    Ok(id)
}

/// A new file that nobody looks for; it vanishes unless it is renamed. An error has not its name, which is another one
/// each time: the same loss would be said at every drain.
pub fn hidden_file(directory: &Path) -> std::io::Result<NamedTempFile> {
    tempfile::Builder::new()
        .prefix(".devprof-")
        .make_in(directory, |path| {
            let mut options = File::options();
            options.read(true).write(true).create_new(true).open(path)
        })
}

/// Whether a file is the one that was written, and as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
}

impl FileId {
    fn of(metadata: &Metadata) -> FileId {
        FileId {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }

    /// Whether the file is at `path`, as it was written.
    pub fn is_at(&self, path: &Path) -> bool {
        std::fs::metadata(path).is_ok_and(|metadata| FileId::of(&metadata) == *self)
    }

    /// Whether there is another file at `path` now, or this one was changed.
    pub fn is_replaced(&self, path: &Path) -> bool {
        std::fs::metadata(path).is_ok_and(|metadata| FileId::of(&metadata) != *self)
    }
}

fn make_directory(directory: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(directory).map_err(|e| Error::Directory(directory.into(), e))
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Holds the directory of `path` locked against other processes that add to files in it, while `change` gives the new
/// content from the old one (`None`: there is no such file). Files are replaced by renaming, so the lock cannot be on
/// the file itself. Of a file that is longer than `length` only one byte more is read. `false` when `change` wants the
/// file left as it is.
pub fn update(
    path: &Path,
    length: usize,
    change: impl FnOnce(Option<Vec<u8>>) -> Result<Option<Vec<u8>>, Error>,
) -> Result<bool, Error> {
    let target = followed(path)?;
    let directory = directory_of(&target);
    make_directory(directory)?;
    let locked = File::open(directory).and_then(|lock| lock.lock().map(|()| lock));
    if let Err(error) = &locked {
        // As LLVM's runtime does. The file is whole all the same.
        report::lost(format_args!(
            "cannot lock {}: {error}; what processes add to a file in it at the same time may be lost",
            directory.display()
        ));
    }
    let old = match read(&target, length) {
        Ok(bytes) => Some(bytes),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
        Err(e) => return Err(Error::Read(path.into(), e)),
    };
    match change(old)? {
        Some(bytes) => write(path, &bytes).map(|_| true),
        None => Ok(false),
    }
}

fn read(path: &Path, length: usize) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    room::reserve(&mut bytes, length.saturating_add(1)).map_err(std::io::Error::other)?;
    File::open(path)?
        .take(length as u64 + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_architecture_goes_before_the_name_and_no_colon_with_it() {
        assert_eq!(
            prefixed(Path::new("a/b.profraw"), "gfx1100", 0),
            Path::new("a/gfx1100.b.profraw")
        );
        assert_eq!(
            prefixed(Path::new("b.profraw"), "gfx90a:xnack+", 2),
            Path::new("gfx90a.2.b.profraw")
        );
    }

    #[test]
    fn a_file_that_cannot_be_written_leaves_the_old_one_and_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/er/x.profraw");
        write(&path, b"one").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"one");
        // A directory in the way of the final name: the rename fails.
        let blocked = dir.path().join("blocked");
        std::fs::create_dir_all(blocked.join("x")).unwrap();
        assert!(matches!(write(&blocked, b"two"), Err(Error::Write(..))));
        let names: Vec<_> = std::fs::read_dir(dir.path())
            .unwrap()
            .map(|e| e.unwrap().file_name())
            .collect();
        assert_eq!(names.len(), 2, "{names:?}");
    }
}
