//! Locks a directory of profiles, so that processes that add to a file in it do so one after the other.
//!
//! The lock is on a file that stays in the directory, taken with `fcntl`: NFS and Lustre coordinate these locks
//! between nodes. (`flock` on a directory succeeds there, but only excludes processes of the same node. A profile itself
//! cannot be locked: it is replaced by a rename, and while an NFS client has it open, that rename is not atomic.) If that
//! lock is not supported, `flock` on the directory at least excludes processes of this node.

use crate::support::diagnostics;
use crate::sys::{files, mounts, writes};
use std::fmt::Display;
use std::fs::{File, Permissions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The name of the file.
const NAME: &str = ".devprof-lock";
/// The processes that are not excluded by a lock of this node.
const NODES: &str = "processes of several nodes or users";
/// How long to wait at least, whatever DEVPROF_SYNC_MS is: other processes have the lock while they add to a file.
const SHORTEST_LIMIT: Duration = Duration::from_secs(1);
/// A drain waits for at most this number of limits if other processes make progress.
const MOST_LIMITS: u32 = 30;
/// The pauses between attempts begin with the first and double until the last.
const PAUSES: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(16)];

/// How long a drain waits for locks. A process that has waited in vain does not wait again until it gets a lock.
#[derive(Debug, Default)]
pub struct Wait {
    begin: Option<Instant>,
    limit: Duration,
    was_in_vain: bool,
}

impl Wait {
    /// A drain begins. `limit`: the longest time in which no other process makes progress.
    pub fn begin(&mut self, limit: Duration) {
        self.limit = limit.max(SHORTEST_LIMIT);
        self.begin = Some(Instant::now());
    }

    /// Calls `attempt`, which locks `file`, until it returns true or fails. False at the limit.
    fn repeat(
        &mut self,
        file: &File,
        mut attempt: impl FnMut() -> io::Result<bool>,
    ) -> io::Result<bool> {
        let [mut pause, longest] = PAUSES;
        let modified = || file.metadata().and_then(|file| file.modified()).ok();
        let (mut last, mut since) = (modified(), Instant::now());
        let all = self.limit.saturating_mul(MOST_LIMITS);
        while !attempt()? {
            let now = modified();
            if now != last {
                (last, since) = (now, Instant::now());
            }
            let is_over = since.elapsed() >= self.limit
                || self.begin.is_none_or(|begin| begin.elapsed() >= all);
            if self.was_in_vain || is_over {
                self.was_in_vain = true;
                return Ok(false);
            }
            sleep(pause);
            pause = (2 * pause).min(longest);
        }
        self.was_in_vain = false;
        Ok(true)
    }
}

/// The lock, until it is dropped.
pub enum Lock {
    File(File),
    Directory(File),
    /// None: the reason was reported.
    None,
}

impl Drop for Lock {
    /// Not only by closing the file: a child that was forked meanwhile has it open, too.
    fn drop(&mut self) {
        let _ = match self {
            Lock::File(file) => files::unlock(file),
            Lock::Directory(directory) => directory.unlock(),
            Lock::None => Ok(()),
        };
    }
}

/// Locks a directory. If that is not possible, or another process does not release the lock in time, this is reported,
/// and the caller goes on: LLVM's runtime continues without a lock, too. The files are complete in any case.
pub fn lock(directory: &Path, wait: &mut Wait) -> Lock {
    let path = directory.join(NAME);
    let locked = open(directory, &path).and_then(|file| {
        let is_locked = wait.repeat(&file, || files::try_lock(&file))?;
        // Shows waiting processes that there is progress: the file has another time.
        let _ = writes::without_signals(|| is_locked.then(|| file.write_at(b"\n", 0)));
        Ok(is_locked.then_some(file))
    });
    let error = match locked {
        Ok(Some(file)) => {
            let is_local = file
                .metadata()
                .is_ok_and(|file| mounts::has_local_locks(&file));
            if is_local {
                report(
                    &path,
                    directory,
                    &"the file system is mounted without locks between nodes",
                    NODES,
                );
            }
            return Lock::File(file);
        }
        Ok(None) => return report_held(directory, wait),
        Err(error) => error,
    };
    let locked = File::open(directory).and_then(|file| {
        let is_locked = wait.repeat(&file, || match file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => Err(error),
        })?;
        Ok(is_locked.then_some(Lock::Directory(file)))
    });
    let (lock, who) = match locked {
        Ok(Some(lock)) => (lock, NODES),
        Ok(None) => return report_held(directory, wait),
        Err(_) => (Lock::None, "several processes"),
    };
    report(&path, directory, &error, who);
    lock
}

/// `who`: the processes that are not excluded.
fn report(path: &Path, directory: &Path, why: &dyn Display, who: &str) {
    diagnostics::lost(format_args!(
        "cannot lock {}: {why}; counts that {who} add to a file in {} at the same time may be lost",
        path.display(),
        directory.display()
    ));
}

/// Opens the file of a directory's lock. Creates it if it does not exist: whoever may replace the profiles may lock it.
fn open(directory: &Path, path: &Path) -> io::Result<File> {
    let mut options = File::options();
    // Neither a link nor a pipe of another user.
    let options = options
        .read(true)
        .write(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let existing = options.open(path);
    if !matches!(&existing, Err(error) if error.kind() == ErrorKind::NotFound) {
        return existing;
    }
    // Not in one call with the first attempt: in a directory that everybody may write to, the kernel refuses to open
    // another user's file that way (fs.protected_regular).
    match options.create_new(true).open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            options.create_new(false).open(path)
        }
        created => {
            let file = created?;
            let writers = directory.metadata()?.permissions().mode() & 0o022;
            file.set_permissions(Permissions::from_mode(0o644 | writers))?;
            Ok(file)
        }
    }
}

fn report_held(directory: &Path, wait: &Wait) -> Lock {
    diagnostics::lost(format_args!(
        "cannot lock {}: another process has not released its lock within {} ms (DEVPROF_SYNC_MS); counts that several processes add to a file in it at the same time may be lost",
        directory.display(),
        wait.limit.as_millis()
    ));
    Lock::None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Waits for a lock that `is_released` releases. Returns whether it got it, and the number of attempts.
    fn repeat(wait: &mut Wait, file: &File, is_released: impl Fn(u32) -> bool) -> (bool, u32) {
        let attempts = Cell::new(0);
        let locked = wait.repeat(file, || {
            attempts.set(attempts.get() + 1);
            Ok(is_released(attempts.get()))
        });
        (locked.expect("a lock"), attempts.get())
    }

    #[test]
    fn a_lock_that_is_never_released_is_waited_for_once() {
        let file = tempfile::tempfile().expect("a file");
        let mut wait = Wait::default();
        wait.begin(Duration::ZERO);
        assert!(!repeat(&mut wait, &file, |_| false).0);
        assert_eq!(repeat(&mut wait, &file, |_| false), (false, 1));
        wait.begin(Duration::ZERO);
        assert_eq!(repeat(&mut wait, &file, |_| false), (false, 1));
        // It is released.
        assert_eq!(repeat(&mut wait, &file, |_| true), (true, 1));
        assert_eq!(repeat(&mut wait, &file, |attempts| attempts > 1), (true, 2));
    }

    #[test]
    fn while_others_make_progress_the_limit_begins_again() {
        let file = tempfile::tempfile().expect("a file");
        let mut wait = Wait::default();
        const LIMIT: Duration = Duration::from_secs(2);
        wait.begin(LIMIT);
        let begin = Instant::now();
        let locked = wait.repeat(&file, || {
            file.write_at(b"\n", 0)?;
            Ok(begin.elapsed() >= 2 * LIMIT)
        });
        assert!(locked.expect("a lock"));
    }
}
