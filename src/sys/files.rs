//! Files: their size limit, reserved disk space, mappings.

use memmap2::{MmapMut, MmapOptions};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Fails if a file of `size` bytes would exceed RLIMIT_FSIZE: writing it would end the program with SIGXFSZ.
pub fn check_size(size: u64) -> io::Result<()> {
    let mut limit = std::mem::MaybeUninit::<libc::rlimit>::zeroed();
    // SAFETY: the call only writes the limit.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, limit.as_mut_ptr()) } == 0;
    // SAFETY: zeroed above, and any bits are a valid limit.
    let limit = unsafe { limit.assume_init() }.rlim_cur;
    match known && limit != libc::RLIM_INFINITY && size > limit {
        true => Err(io::Error::from_raw_os_error(libc::EFBIG)),
        false => Ok(()),
    }
}

/// Allocates disk space for `length` bytes of a file, starting at `start`, so that writing to a mapping of them cannot
/// fail.
pub fn reserve(file: &File, start: u64, length: u64) -> io::Result<()> {
    check_size(start.saturating_add(length))?;
    loop {
        // SAFETY: a file that is open for writing; offsets that fit (a file cannot be longer).
        let error = unsafe {
            libc::posix_fallocate(
                file.as_raw_fd(),
                start as libc::off_t,
                length as libc::off_t,
            )
        };
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
