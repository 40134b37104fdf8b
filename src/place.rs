//! Last stage: where a profile goes, and how it gets there: whole, or not at all.

use crate::host;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, Permissions};
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// LLVM's name where nobody gave one.
const DEFAULT: &str = "default.profraw";

/// A file name pattern with its specifiers expanded (LLVM's "Source-based Code Coverage", "Running the instrumented
/// program").
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    pub path: PathBuf,
    /// %m or %Nm: several processes add up in the file.
    pub merge: bool,
    /// %c, which needs counters in host memory and is left out.
    pub continuous: bool,
}

/// The values of the specifiers in this process, now.
pub struct Values {
    pub pid: u32,
    pub host: OsString,
    pub tmp: OsString,
}

impl Values {
    pub fn now() -> Values {
        Values {
            pid: std::process::id(),
            host: host::host_name().unwrap_or_default(),
            tmp: host::env("TMPDIR").unwrap_or_else(|| "/tmp".into()),
        }
    }
}

/// What tells one code object from another in a file name.
#[derive(Clone, Copy)]
pub struct ObjectId<'a> {
    /// Of its functions, for %m: programs with different device code get different files.
    pub signature: u64,
    /// Its own build id, for %b, in hexadecimal there. The signature stands in where it has none.
    pub build_id: Option<&'a [u8]>,
}

/// Expands `pattern`: %p process id, %h host, %t TMPDIR, %b the code object's build id, %m its signature, %Nm its
/// signature and a pool of N files. As in LLVM, what follows another percent sign vanishes, a percent sign too.
fn expand(pattern: &OsStr, values: &Values, object: ObjectId) -> Destination {
    let mut path = Vec::new();
    let (mut merge, mut continuous) = (false, false);
    let mut rest = pattern.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            path.push(byte);
            continue;
        }
        let Some((&specifier, after)) = rest.split_first() else {
            break;
        };
        rest = after;
        match specifier {
            b'p' => path.extend(values.pid.to_string().bytes()),
            b'h' => path.extend(values.host.as_bytes()),
            b't' => {
                path.extend(values.tmp.as_bytes());
                path.push(b'/');
            }
            b'b' => match object.build_id {
                Some(id) => path.extend(
                    id.iter()
                        .flat_map(|byte| format!("{byte:02x}").into_bytes()),
                ),
                None => path.extend(object.signature.to_string().bytes()),
            },
            b'c' => continuous = true,
            b'm' => {
                merge = true;
                path.extend(format!("{}_0", object.signature).bytes());
            }
            b'1'..=b'9' if rest.first() == Some(&b'm') => {
                merge = true;
                rest = &rest[1..];
                let pool = values.pid % u32::from(specifier - b'0');
                path.extend(format!("{}_{pool}", object.signature).bytes());
            }
            _ => {}
        }
    }
    Destination {
        path: PathBuf::from(OsString::from_vec(path)),
        merge,
        continuous,
    }
}

/// A pattern for a file that belongs to no code object: %p, %h and %t, and %% for a percent sign.
pub fn expand_process(pattern: &OsStr, values: &Values) -> PathBuf {
    let mut path = Vec::new();
    let mut bytes = pattern.as_bytes().iter();
    while let Some(&byte) = bytes.next() {
        if byte != b'%' {
            path.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'p') => path.extend(values.pid.to_string().bytes()),
            Some(b'h') => path.extend(values.host.as_bytes()),
            Some(b't') => path.extend(values.tmp.as_bytes()),
            Some(b'%') => path.push(b'%'),
            // No specifier: as it stands.
            Some(&other) => path.extend([b'%', other]),
            None => path.push(b'%'),
        }
    }
    PathBuf::from(OsString::from_vec(path))
}

/// Where profiles are to go.
pub enum Target {
    /// A pattern, to be expanded each time.
    Pattern(OsString),
    /// A name in which a percent sign is a percent sign.
    Name(PathBuf),
}

impl Target {
    /// LLVM_PROFILE_FILE, else what LLVM's host runtime in this program would write to, else LLVM's default.
    pub fn new(setting: Option<&OsStr>) -> Target {
        match setting {
            Some(pattern) => Target::Pattern(pattern.to_owned()),
            None => Target::Name(host::host_profile_name().map_or(DEFAULT.into(), PathBuf::from)),
        }
    }

    pub fn destination(&self, values: &Values, object: ObjectId) -> Destination {
        match self {
            Target::Pattern(pattern) => expand(pattern, values, object),
            Target::Name(path) => Destination {
                path: path.clone(),
                merge: false,
                continuous: false,
            },
        }
    }
}

/// `path` with the architecture (and, from the second code object of one on, its number) before the file's name:
/// `dir/<arch>[.<n>].<basename>`, as `__llvm_write_custom_profile` puts the target there.
pub fn prefixed(path: &Path, arch: &str, n: usize) -> PathBuf {
    let mut name = OsString::from(arch.split(':').next().unwrap_or(arch));
    if n > 0 {
        name.push(format!(".{n}"));
    }
    name.push(".");
    name.push(path.file_name().unwrap_or(OsStr::new(DEFAULT)));
    path.with_file_name(name)
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
    #[error("cannot lock {0} to add to a file in it: {1}")]
    Lock(PathBuf, std::io::Error),
}

/// Writes `bytes` to `path`: first under a hidden name beside it, then renamed, so that the final name always has a
/// whole file. Missing directories are made, as LLVM does.
pub fn write(path: &Path, bytes: &[u8]) -> Result<FileId, Error> {
    let directory = directory_of(path);
    let create = || hidden_file(directory);
    let failed = |e| Error::Write(path.into(), e);
    let mut file = match create() {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            make_directory(directory)?;
            create()
        }
        made => made,
    }
    .map_err(failed)?;
    file.write_all(bytes).map_err(failed)?;
    let id = FileId::of(&file.as_file().metadata().map_err(failed)?);
    file.persist(path).map_err(|e| failed(e.error))?;
    Ok(id)
}

/// A new file that nobody looks for; it vanishes unless it is renamed.
pub fn hidden_file(directory: &Path) -> std::io::Result<NamedTempFile> {
    tempfile::Builder::new()
        .prefix(".devprof-")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(directory)
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
/// the file itself. `false` when `change` wants the file left as it is.
pub fn update(
    path: &Path,
    change: impl FnOnce(Option<Vec<u8>>) -> Option<Vec<u8>>,
) -> Result<bool, Error> {
    let directory = directory_of(path);
    make_directory(directory)?;
    let lock = File::open(directory).map_err(|e| Error::Lock(directory.into(), e))?;
    lock.lock().map_err(|e| Error::Lock(directory.into(), e))?;
    let old = match std::fs::read(path) {
        Ok(bytes) => Some(bytes),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
        Err(e) => return Err(Error::Read(path.into(), e)),
    };
    match change(old) {
        Some(bytes) => write(path, &bytes).map(|_| true),
        None => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OBJECT: ObjectId = ObjectId {
        signature: 99,
        build_id: Some(&[0x0a, 0xff]),
    };

    fn values() -> Values {
        Values {
            pid: 4711,
            host: "box".into(),
            tmp: "/var/tmp".into(),
        }
    }

    fn expanded(pattern: &str) -> (String, bool) {
        let to = expand(OsStr::new(pattern), &values(), OBJECT);
        (to.path.to_str().unwrap().to_owned(), to.merge)
    }

    #[test]
    fn patterns_are_llvms() {
        assert_eq!(expanded("a.profraw"), ("a.profraw".into(), false));
        assert_eq!(
            expanded("d/%p-%h.profraw"),
            ("d/4711-box.profraw".into(), false)
        );
        assert_eq!(expanded("%t/x"), ("/var/tmp//x".into(), false));
        assert_eq!(expanded("x-%m.profraw"), ("x-99_0.profraw".into(), true));
        assert_eq!(expanded("x-%4m.profraw"), ("x-99_3.profraw".into(), true));
        assert_eq!(expanded("x-%b"), ("x-0aff".into(), false));
        assert_eq!(expanded("100%%.%q4%"), ("100.4".into(), false));
        assert!(expand(OsStr::new("%c%p"), &values(), OBJECT).continuous);
    }

    #[test]
    fn a_trace_has_a_name_a_process() {
        let expanded = |pattern| expand_process(OsStr::new(pattern), &values());
        assert_eq!(
            expanded("%t/%h-%p.trace"),
            Path::new("/var/tmp/box-4711.trace")
        );
        assert_eq!(expanded("100%%-%q%"), Path::new("100%-%q%"));
    }

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
