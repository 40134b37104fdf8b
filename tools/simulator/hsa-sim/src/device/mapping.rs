//! Mapped memory for allocations.
//!
//! Programs, kernels and copies use the same address for a byte. Without a large BAR, the host cannot access a GPU's memory
//! at that address: like the kernel driver, the simulator maps it without access rights. The model and copies access the
//! bytes through a second mapping, whose address the program does not know.

use super::shared_file::{Location, SharedFile};
use std::ffi::c_int;
use std::fs::File;
use std::os::fd::AsRawFd;

/// The granule and the alignment of allocations, in bytes.
pub const PAGE: usize = 4096;

/// Mapped memory. Unmapped when dropped.
#[derive(Debug)]
pub struct Mapping {
    address: usize,
    size: usize,
    /// An address at which the bytes can be accessed: `address` if the host can access that.
    bytes: usize,
    /// Where other processes find the bytes.
    location: Option<Location>,
    /// The process that frees the bytes in the file when it unmaps them.
    owner: Option<u32>,
}

impl Mapping {
    /// Memory of the host, of `size` bytes (a multiple of a page). A forked child does not inherit it.
    pub fn host(size: usize) -> Option<Mapping> {
        let address = map(size, libc::MAP_PRIVATE)?;
        not_in_children(address, size);
        Some(Mapping::new(address, size, address))
    }

    fn new(address: usize, size: usize, bytes: usize) -> Mapping {
        Mapping {
            address,
            size,
            bytes,
            location: None,
            owner: None,
        }
    }

    /// Memory of a GPU. A forked child does not inherit it.
    pub fn device(size: usize, host_accessible: bool) -> Option<Mapping> {
        if host_accessible {
            return Mapping::host(size);
        }
        Mapping::hidden(map(size, libc::MAP_SHARED)?, size)
    }

    /// Memory of a GPU that other processes can attach. A forked child does not inherit it.
    pub fn shared(file: &mut SharedFile, size: usize, host_accessible: bool) -> Option<Mapping> {
        let (file, location) = file.reserve(size)?;
        let mut memory = Mapping::of_file(file, location.offset, size, host_accessible)?;
        memory.location = Some(location);
        memory.owner = Some(location.process);
        Some(memory)
    }

    /// Memory of a GPU that another process has allocated.
    pub fn attached(location: Location, size: usize, host_accessible: bool) -> Option<Mapping> {
        let file = location.open()?;
        Mapping::of_file(&file, location.offset, size, host_accessible)
    }

    fn of_file(file: &File, offset: u64, size: usize, host_accessible: bool) -> Option<Mapping> {
        let offset = libc::off_t::try_from(offset).ok()?;
        let bytes = map_file(size, libc::MAP_SHARED, file.as_raw_fd(), offset)?;
        if host_accessible {
            not_in_children(bytes, size);
            return Some(Mapping::new(bytes, size, bytes));
        }
        Mapping::hidden(bytes, size)
    }

    /// Makes a second mapping of a shared mapping, without access rights.
    fn hidden(bytes: usize, size: usize) -> Option<Mapping> {
        // SAFETY: an old size of 0 makes a second mapping of the same shared pages at a new address.
        let address = unsafe { libc::mremap(bytes as *mut _, 0, size, libc::MREMAP_MAYMOVE) };
        if address == libc::MAP_FAILED {
            unmap(bytes, size);
            return None;
        }
        let memory = Mapping::new(address as usize, size, bytes);
        // SAFETY: the new mapping, which is not in use yet.
        let hidden = unsafe { libc::mprotect(address, size, libc::PROT_NONE) } == 0;
        not_in_children(memory.address, size);
        not_in_children(memory.bytes, size);
        hidden.then_some(memory)
    }

    /// The address that programs and kernels use.
    pub fn address(&self) -> usize {
        self.address
    }

    /// Bytes, a multiple of a page.
    pub fn size(&self) -> usize {
        self.size
    }

    /// An address at which the simulator can access the bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Where other processes find the bytes. `None`: they cannot attach this memory.
    pub fn location(&self) -> Option<Location> {
        self.location
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // A forked child does not have the mapping, and must not free the parent's memory.
        if self.owner == Some(std::process::id()) {
            // SAFETY: pages of a mapping that is not in use any more. Without them, the file reads as zeros.
            unsafe { libc::madvise(self.bytes as *mut _, self.size, libc::MADV_REMOVE) };
        }
        unmap(self.address, self.size);
        if self.bytes != self.address {
            unmap(self.bytes, self.size);
        }
    }
}

fn map(size: usize, sharing: c_int) -> Option<usize> {
    map_file(size, sharing | libc::MAP_ANONYMOUS, -1, 0)
}

fn map_file(size: usize, flags: c_int, file: c_int, offset: libc::off_t) -> Option<usize> {
    // SAFETY: a new mapping does not affect other memory.
    let base = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            size,
            libc::PROT_READ | libc::PROT_WRITE,
            flags | libc::MAP_NORESERVE,
            file,
            offset,
        )
    };
    (base != libc::MAP_FAILED).then_some(base as usize)
}

fn unmap(base: usize, size: usize) {
    // SAFETY: a mapping of this module that is not in use any more.
    unsafe { libc::munmap(base as *mut _, size) };
}

/// Excludes the memory from forked children, which would share it with the parent.
fn not_in_children(base: usize, size: usize) {
    // SAFETY: a mapping of this module; the advice changes nothing in this process. It cannot fail on such memory.
    unsafe { libc::madvise(base as *mut _, size, libc::MADV_DONTFORK) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn maps() -> String {
        std::fs::read_to_string("/proc/self/maps").expect("Linux")
    }

    /// A field of the line about the mapping that contains an address: 1 for its access rights, 4 for its inode.
    fn field(address: usize, field: usize) -> String {
        let maps = maps();
        let line = maps.lines().find(|line| {
            let (range, _) = line.split_once(' ').expect("a range");
            let (start, end) = range.split_once('-').expect("two addresses");
            let number = |text| usize::from_str_radix(text, 16).expect("hexadecimal");
            (number(start)..number(end)).contains(&address)
        });
        let found = line.and_then(|line| line.split(' ').nth(field));
        found.unwrap_or("none").into()
    }

    fn rights(address: usize) -> String {
        field(address, 1)
    }

    #[test]
    fn only_a_large_bar_gives_the_host_access_to_gpu_memory() {
        both_mappings_are_the_same_bytes_and_start_as_zeros();
        let hidden = Mapping::device(PAGE, false).expect("memory");
        assert_eq!(rights(hidden.address()), "---s");
        assert_eq!(rights(hidden.bytes()), "rw-s");
        // Other threads may map other memory at the same addresses, but no other shared memory has this inode.
        let inode = field(hidden.bytes(), 4);
        let mappings = || {
            let maps = maps();
            let inodes = maps.lines().map(|line| line.split(' ').nth(4));
            inodes.filter(|found| *found == Some(&inode)).count()
        };
        assert_eq!(mappings(), 2);
        drop(hidden);
        assert_eq!(mappings(), 0);
        let visible = Mapping::device(PAGE, true).expect("memory");
        assert_eq!(rights(visible.address()), "rw-p");
        assert_eq!(visible.address(), visible.bytes());
    }

    fn both_mappings_are_the_same_bytes_and_start_as_zeros() {
        let memory = Mapping::device(2 * PAGE, false).expect("memory");
        // SAFETY: this test's own memory; mprotect makes the first mapping accessible.
        unsafe {
            let first = memory.address() as *mut u64;
            let rights = libc::PROT_READ | libc::PROT_WRITE;
            assert_eq!(libc::mprotect(first.cast(), 2 * PAGE, rights), 0);
            let second = (memory.bytes() as *mut u64).add(PAGE / 8);
            assert_eq!(second.read(), 0);
            second.write(7);
            assert_eq!(first.add(PAGE / 8).read(), 7);
        }
    }
    #[test]
    fn shared_memory_can_be_attached_until_it_is_freed() {
        let mut file = SharedFile::new().expect("a file");
        let word = |memory: &Mapping| memory.bytes() as *mut u64;
        let first = Mapping::shared(&mut file, PAGE, true).expect("memory");
        let second = Mapping::shared(&mut file, 2 * PAGE, false).expect("memory");
        assert_eq!(rights(second.address()), "---s");
        let location = second.location().expect("a location");
        let attached = Mapping::attached(location, 2 * PAGE, true).expect("memory");
        // SAFETY: this test's own memory.
        unsafe {
            word(&first).write(1);
            word(&second).write(2);
            assert_eq!(word(&attached).read(), 2);
            word(&attached).add(PAGE / 8).write(3);
            assert_eq!(word(&second).add(PAGE / 8).read(), 3);
            drop(second);
            assert_eq!(word(&attached).read(), 0);
            assert_eq!(word(&first).read(), 1);
        }
        let inode = location.inode + 1;
        assert!(Location { inode, ..location }.open().is_none());
        drop(file);
        assert!(location.open().is_none());
    }
}
