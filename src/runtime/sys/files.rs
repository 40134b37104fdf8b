//! Files: locks, reserved disk space, mappings.

use super::writes;
use memmap2::{MmapMut, MmapOptions};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};

/// Tries to lock a file, which must be open for writing. NFS and Lustre coordinate such locks between nodes. Returns
/// whether it is locked now: for the open file, not for the process. False: another one has the lock.
pub fn try_lock(file: &File) -> io::Result<bool> {
    match set_lock(file, libc::F_WRLCK) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => {
            Ok(false)
        }
        result => result.map(|()| true),
    }
}

/// Releases the lock of [`try_lock`].
pub fn unlock(file: &File) -> io::Result<()> {
    set_lock(file, libc::F_UNLCK)
}

fn set_lock(file: &File, kind: libc::c_int) -> io::Result<()> {
    // SAFETY: plain numbers. The range from 0 with a length of 0 is the complete file.
    let mut lock = unsafe { std::mem::zeroed::<libc::flock>() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    // SAFETY: an open file; the call only reads the lock.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Gives a file a descriptor with a high number, if possible: programs that close descriptors that they have not opened
/// rarely count that far.
pub fn with_high_descriptor(file: File) -> File {
    const LOWEST: libc::c_int = 512;
    // SAFETY: an open file; returns a new descriptor, which has no other owner.
    unsafe {
        match libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, LOWEST) {
            -1 => file,
            new => File::from_raw_fd(new),
        }
    }
}

/// Allocates disk space for `length` bytes of a file, starting at `start`, so that writing to a mapping of them cannot
/// fail.
pub fn reserve(file: &File, start: u64, length: u64) -> io::Result<()> {
    loop {
        // SAFETY: a file that is open for writing; offsets that fit (a file cannot be longer).
        let error = writes::without_signals(|| unsafe {
            libc::posix_fallocate(
                file.as_raw_fd(),
                start as libc::off_t,
                length as libc::off_t,
            )
        });
        match error {
            0 => return Ok(()),
            libc::EINTR => {}
            error => return Err(io::Error::from_raw_os_error(error)),
        }
    }
}

/// Maps bytes of a file that devprof created. They must be inside the file.
pub fn map(file: &File, start: u64, length: usize) -> io::Result<MmapMut> {
    // SAFETY: this process created the file and holds its lock; the mapped bytes are plain numbers.
    unsafe { MmapOptions::new().offset(start).len(length).map_mut(file) }
}
