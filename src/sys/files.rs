//! Files: descriptors, reserved disk space, mappings.

use super::writes;
use memmap2::{MmapMut, MmapOptions};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};

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
