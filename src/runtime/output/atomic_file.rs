//! Writes files atomically.

use super::lock::{self, Wait};
use super::pattern::DEFAULT;
use crate::support::alloc::{self, OutOfMemory};
use crate::sys::{env, writes};
use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io::{Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// `dir/<arch>[.<n>].<basename>`: adds the architecture, and the number `n` unless it is 0, in front of the file name.
/// LLVM's `__llvm_write_custom_profile` adds the target in the same way.
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
    #[error("cannot create the directory {0}: {1}")]
    Directory(PathBuf, std::io::Error),
    #[error("cannot write {0}: {1}")]
    Write(PathBuf, std::io::Error),
    #[error("cannot read {0} to add the profile to it: {1}")]
    Read(PathBuf, std::io::Error),
    #[error("{0} is not a regular file; set LLVM_PROFILE_FILE to the name of one")]
    NotRegular(PathBuf),
    #[error(
        "{0} is a symbolic link of another user, in a directory in which everybody may create files"
    )]
    ForeignLink(PathBuf),
    #[error(
        "{0} is a symbolic link, which devprof does not follow in a program with more privileges than its caller"
    )]
    PrivilegedLink(PathBuf),
    #[error(
        "a program with more privileges than its caller writes profiles only to an absolute path that its compiler has set (-fprofile-instr-generate=PATH), not to {0}"
    )]
    Privileged(PathBuf),
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
}

/// Whether to write a profile with this name, or with a prefix in the same directory. False for /dev/null. Fails for
/// other devices, and for links to something that is not a file, such as /dev/stdout, because nobody expects files in
/// that directory. Named pipes are accepted.
pub fn is_wanted(path: &Path) -> Result<bool, Error> {
    let Ok(metadata) = std::fs::metadata(path) else {
        return Ok(true);
    };
    let kind = metadata.file_type();
    if kind.is_char_device() && metadata.rdev() == libc::makedev(1, 3) {
        return Ok(false);
    }
    let device = kind.is_char_device() || kind.is_block_device();
    let is_link = !kind.is_file() && !kind.is_dir() && path.is_symlink();
    if device || is_link {
        Err(Error::NotRegular(path.into()))
    } else {
        Ok(true)
    }
}

/// Whether a symbolic link may be followed, as the kernel decides with fs.protected_symlinks=1: anybody can create a link
/// in a directory such as /tmp. The kernel itself is not asked, because devprof opens the directory that a link names.
fn may_follow(link: &Path, owner: u32) -> bool {
    let shared = libc::S_ISVTX | libc::S_IWOTH;
    std::fs::metadata(directory_of(link)).is_ok_and(|directory| {
        directory.mode() & shared != shared
            || owner == directory.uid()
            || owner == env::effective_user()
    })
}

/// Follows symbolic links, as LLVM does when it writes a profile. Fails if the result exists and is not a regular file.
fn followed(path: &Path) -> Result<PathBuf, Error> {
    let mut file = path.to_owned();
    // The kernel follows at most 40 links.
    for _ in 0..40 {
        let Ok(metadata) = std::fs::symlink_metadata(&file) else {
            return Ok(file);
        };
        let kind = metadata.file_type();
        if !kind.is_symlink() {
            return if kind.is_file() || kind.is_dir() {
                Ok(file)
            } else {
                Err(Error::NotRegular(file))
            };
        }
        if env::is_secure() {
            return Err(Error::PrivilegedLink(file));
        }
        // Nobody else can replace a link that may be followed.
        if !may_follow(&file, metadata.uid()) {
            return Err(Error::ForeignLink(file));
        }
        match std::fs::read_link(&file) {
            Ok(target) => file = directory_of(&file).join(target),
            Err(error) => return Err(Error::Write(path.into(), error)),
        }
    }
    let error = std::io::Error::from_raw_os_error(libc::ELOOP);
    Err(Error::Write(path.into(), error))
}

/// Writes `bytes` to `path`. First writes a hidden file in the same directory and then renames it, so a file with the
/// final name is always complete. Creates missing directories, as LLVM does.
pub fn write(path: &Path, bytes: &[u8]) -> Result<FileId, Error> {
    let target = followed(path)?;
    let directory = directory_of(&target);
    let create = || hidden_file(directory);
    let failed = |e| Error::Write(path.into(), e);
    let mut file = match create() {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            create_directory(directory)?;
            create()
        }
        created => created,
    }
    .map_err(failed)?;
    writes::without_signals(|| file.as_file_mut().write_all(bytes)).map_err(failed)?;
    let id = FileId::of(&file.as_file().metadata().map_err(failed)?);
    file.persist(&target).map_err(|e| failed(e.error))?;
    Ok(id)
}

/// Creates a hidden file, which is removed unless it is renamed. Errors do not contain the name, which differs each
/// time: the same error would be reported at each drain.
pub fn hidden_file(directory: &Path) -> std::io::Result<NamedTempFile> {
    tempfile::Builder::new()
        .prefix(".devprof-")
        .make_in(directory, |path| {
            let mut options = File::options();
            options.read(true).write(true).create_new(true).open(path)
        })
}

/// Identifies a file and its content, to detect changes.
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

    /// The file at `path`.
    pub fn at(path: &Path) -> Option<FileId> {
        std::fs::metadata(path).ok().as_ref().map(FileId::of)
    }
}

fn create_directory(directory: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(directory).map_err(|e| Error::Directory(directory.into(), e))
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Replaces the content of a file. `change` gets the old content, or `None` if the file does not exist. It returns the
/// new content, or `None` to leave the file unchanged. Meanwhile the directory is locked, so that other processes do
/// not update the file. Reads at most `length` + 1 bytes. Returns whether the file was written.
pub fn update(
    path: &Path,
    length: usize,
    wait: &mut Wait,
    change: impl FnOnce(Option<Vec<u8>>) -> Result<Option<Vec<u8>>, Error>,
) -> Result<bool, Error> {
    let target = followed(path)?;
    let directory = directory_of(&target);
    create_directory(directory)?;
    let _lock = lock::lock(directory, wait);
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
    alloc::reserve(&mut bytes, length.saturating_add(1)).map_err(std::io::Error::other)?;
    File::open(path)?
        .take(length as u64 + 1)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_is_the_architecture_without_features() {
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
    fn a_failed_write_leaves_no_hidden_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("new/er/x.profraw");
        write(&path, b"one").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"one");
        // The final name is a directory, so the rename fails.
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
