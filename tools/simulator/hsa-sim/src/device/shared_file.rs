//! The file with the memory of GPUs, which other processes can map: IPC.
//!
//! A process has one file (a memfd) for all allocations. Each has its own offset, which is not used again.

use std::fs::File;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::os::unix::fs::MetadataExt;

/// The size of the file. It is sparse.
const BYTES: u64 = 1 << 52;

/// The file of this process.
#[derive(Debug)]
pub struct SharedFile {
    file: ManuallyDrop<File>,
    inode: u64,
    /// The process that has made the file. A forked child uses a file of its own.
    process: u32,
    /// The offset of the next allocation.
    next: u64,
}

/// A part of a file, as other processes of the same PID namespace find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location {
    pub process: u32,
    pub descriptor: RawFd,
    pub inode: u64,
    pub offset: u64,
}

impl SharedFile {
    /// A new file. `None` if the size of the process's files is limited, or if there is no descriptor for it.
    pub fn new() -> Option<SharedFile> {
        let mut limit = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: `limit` is an rlimit.
        let known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } == 0;
        // Beyond the limit, ftruncate raises SIGXFSZ.
        if !known || limit.rlim_cur < BYTES {
            return None;
        }
        // SAFETY: a C string.
        let descriptor = unsafe { libc::memfd_create(c"hsa-sim".as_ptr(), libc::MFD_CLOEXEC) };
        if descriptor < 0 {
            return None;
        }
        // SAFETY: a new descriptor that nothing else closes, except for programs that close all.
        let file = unsafe { File::from_raw_fd(descriptor) };
        file.set_len(BYTES).ok()?;
        let inode = file.metadata().ok()?.ino();
        Some(SharedFile {
            file: ManuallyDrop::new(file),
            inode,
            process: std::process::id(),
            next: 0,
        })
    }

    /// Whether this process has made the file, and has not closed its descriptor.
    pub fn is_usable(&self) -> bool {
        self.process == std::process::id()
            && self
                .file
                .metadata()
                .is_ok_and(|found| found.ino() == self.inode)
    }

    /// Reserves `size` bytes (a multiple of a page). Returns the file and where they are in it.
    pub fn reserve(&mut self, size: usize) -> Option<(&File, Location)> {
        let end = self.next.checked_add(size as u64)?;
        if end > BYTES {
            return None;
        }
        let location = Location {
            process: self.process,
            descriptor: self.file.as_raw_fd(),
            inode: self.inode,
            offset: self.next,
        };
        self.next = end;
        Some((&self.file, location))
    }
}

impl Drop for SharedFile {
    fn drop(&mut self) {
        // Otherwise the descriptor may belong to another file now.
        if self.is_usable() {
            // SAFETY: the file is not used any more.
            unsafe { ManuallyDrop::drop(&mut self.file) };
        }
    }
}

impl Location {
    /// Opens the file of another process, or of this one. `None` if that process has ended, or if another process has
    /// made the file.
    pub fn open(&self) -> Option<File> {
        let path = format!("/proc/{}/fd/{}", self.process, self.descriptor);
        let file = File::options().read(true).write(true).open(path).ok()?;
        let found = file.metadata().ok()?;
        let valid = found.ino() == self.inode && found.len() == BYTES && self.offset < BYTES;
        valid.then_some(file)
    }
}
