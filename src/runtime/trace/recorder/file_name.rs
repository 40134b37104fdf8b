//! Chooses the name of a new trace. No two processes get the same name, and only a trace of an earlier run is replaced:
//! not one that another process is still writing, that another process of the same `devprof run` has written, or that
//! this process has written before it executed another program.
//!
//! A process has its trace locked while it writes. No lock is waited for: another process could hold it for ever.

use crate::support::run_log::{self, Event};
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use tempfile::{NamedTempFile, PersistError};
use tracefile::format::{Count, Counter, HEADER_SIZE, Header};
use zerocopy::FromBytes;

/// How many names are tried.
const NAMES: u32 = 10_000;

/// A file with its final name.
pub struct Named {
    pub file: File,
    pub path: PathBuf,
    /// A message, if `path` is not the name that was requested.
    pub instead: Option<String>,
}

/// Renames `hidden` to `path`, or to a name with the process id and a number.
pub fn give(mut hidden: NamedTempFile, path: &Path, header: &Header) -> io::Result<Named> {
    let mut obstacle = if run_log::has_path(Event::Traced, path) {
        Some(Obstacle::InUse)
    } else {
        remove_old(path, header)
    };
    let pid = std::process::id();
    for n in 0..=NAMES {
        let mut name = path.as_os_str().to_owned();
        match n {
            0 if obstacle.is_some() => continue,
            0 => {}
            1 => name.push(format!(".{pid}")),
            n => name.push(format!(".{pid}.{n}")),
        }
        match rename(hidden, name.as_ref()) {
            Ok(file) => {
                let instead = obstacle.map(|why| why.describe(path, name.as_ref()));
                return Ok(Named {
                    file,
                    path: name.into(),
                    instead,
                });
            }
            Err(error) if error.error.kind() == ErrorKind::AlreadyExists => {
                hidden = error.file;
                obstacle.get_or_insert(Obstacle::InUse);
            }
            Err(error) => return Err(error.error),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

/// Why a name cannot be used.
#[derive(Clone, Copy)]
enum Obstacle {
    InUse,
    /// This process has written the file, before it executed another program.
    OfThisProcess,
}

impl Obstacle {
    fn describe(self, path: &Path, instead: &Path) -> String {
        let (path, instead) = (path.display(), instead.display());
        match self {
            Obstacle::InUse => format!(
                "another process is writing the trace {path}: this process writes to {instead} (use %p in DEVPROF_TRACE for one file per process, %h-%p in containers)"
            ),
            Obstacle::OfThisProcess => {
                format!(
                    "the trace {path} is of the program that this process executed before: this one writes to {instead}"
                )
            }
        }
    }
}

/// Removes the trace of an earlier run. If there is another file with this name, returns why it must stay.
fn remove_old(path: &Path, new: &Header) -> Option<Obstacle> {
    // NFS locks a file for one process only if it is open for writing.
    let mut options = File::options();
    let opened = options.read(true).write(true).open(path);
    let old = match opened.or_else(|error| match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => File::open(path),
        _ => Err(error),
    }) {
        Ok(old) => old,
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        Err(_) => return Some(Obstacle::InUse),
    };
    let trace = Trace::read(&old);
    // It may still be locked: by a child that was forked, or for a moment because another process was reading the memory
    // maps in /proc of the program before, which refer to the file.
    if trace
        .as_ref()
        .is_some_and(|trace| trace.header.is_of_same_process(new))
    {
        return Some(Obstacle::OfThisProcess);
    }
    // Until the end of this function, other processes consider the file to be in use.
    match old.try_lock() {
        Ok(()) => {}
        // Without locks, a process that was killed seems to be still writing.
        Err(TryLockError::Error(_)) if trace.is_none_or(|trace| trace.is_closed) => {}
        Err(_) => return Some(Obstacle::InUse),
    }
    let id = |file: &fs::Metadata| (file.dev(), file.ino());
    let is_same = |now: fs::Metadata| old.metadata().is_ok_and(|old| id(&old) == id(&now));
    // Another process may have replaced it.
    let is_removed = fs::metadata(path).is_ok_and(is_same) && fs::remove_file(path).is_ok();
    (!is_removed).then_some(Obstacle::InUse)
}

/// The trace that has the name.
struct Trace {
    header: Header,
    is_closed: bool,
}

impl Trace {
    /// `None`: it is not a valid trace.
    fn read(file: &File) -> Option<Trace> {
        let mut page = [0; HEADER_SIZE];
        file.read_exact_at(&mut page, 0).ok()?;
        let (header, _) = Header::read_from_prefix(&page).ok()?;
        let closed = page.get(Count::Closed.offset()..)?;
        let (closed, _) = Counter::read_from_prefix(closed).ok()?;
        (header.crc.get() == header.checksum()).then_some(Trace {
            header,
            is_closed: closed.get() == Some(1),
        })
    }
}

/// Renames a file unless the name exists. File systems that can only rename a file in the usual way do that.
fn rename(hidden: NamedTempFile, path: &Path) -> Result<File, PersistError> {
    match hidden.persist_noclobber(path) {
        Err(error)
            if error.error.kind() != ErrorKind::AlreadyExists
                && fs::symlink_metadata(path)
                    .is_err_and(|error| error.kind() == ErrorKind::NotFound) =>
        {
            error.file.persist(path)
        }
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// A file that is not renamed yet.
    fn hidden(directory: &Path, header: &Header, is_closed: bool) -> NamedTempFile {
        let mut hidden = NamedTempFile::new_in(directory).expect("a file");
        let mut page = header.page();
        page[Count::Closed.offset()] = u8::from(is_closed);
        page[Count::Closed.offset() + size_of::<Counter>() / 2] ^= u8::from(is_closed);
        hidden.write_all(&page).expect("written");
        hidden
    }

    #[test]
    fn only_traces_of_earlier_runs_are_replaced() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("x.trace");
        let give = |pid, process_started, pid_namespace| {
            let header = Header::new(pid, 1_000_000_000, 1, 1);
            let header = header.of_process(process_started, pid_namespace);
            give(hidden(directory.path(), &header, true), &path, &header).expect("a name")
        };
        let name = |named: &Named| {
            let name = named.path.file_name().unwrap_or_default();
            name.to_string_lossy().into_owned()
        };
        let own = std::process::id();
        // Other processes: with another id, with the same id at another time, and in another namespace.
        for (pid, process_started, pid_namespace) in [(own + 1, 5, 7), (own, 4, 7), (own, 5, 6)] {
            let earlier = give(pid, process_started, pid_namespace);
            assert!(name(&earlier) == "x.trace" && earlier.instead.is_none());
        }
        let first = give(own, 5, 7);
        assert_eq!(name(&first), "x.trace");
        // Another process while the first one writes.
        first.file.try_lock().expect("locked");
        let second = give(own, 5, 8);
        assert_eq!(name(&second), format!("x.trace.{own}"));
        assert!(second.instead.expect("a reason").contains("is writing"));
        // This process, after it has executed another program: a child keeps the file locked, or nobody does.
        for n in 2..4 {
            let executed = give(own, 5, 7);
            assert_eq!(name(&executed), format!("x.trace.{own}.{n}"));
            assert!(executed.instead.expect("a reason").contains("executed"));
            first.file.unlock().expect("unlocked");
        }
        // Nobody knows when these processes were created.
        for _ in 0..2 {
            assert_eq!(name(&give(own, 0, 0)), "x.trace");
        }
    }
}
