//! The process that devprof is a guest of: its environment, its exit and its forks, LLVM's profile runtime in it.
//! FFI to libc and to that runtime.

use crate::guard::{Cost, guarded};
use crate::pattern::Runtime;
use memmap2::{MmapMut, MmapOptions};
use std::cell::Cell;
use std::ffi::{CStr, CString, OsStr, OsString, c_char, c_int, c_void};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// An environment variable. A set-user-id process has none for us: its environment is somebody else's.
pub fn env(name: &str) -> Option<OsString> {
    (!is_secure()).then(|| std::env::var_os(name)).flatten()
}

/// The program runs with somebody else's rights than its caller's.
pub fn is_secure() -> bool {
    // SAFETY: getauxval only reads.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// Sets an environment variable. Only for constructors, before the program has threads.
pub fn set_env(name: &CStr, value: &OsStr) {
    if let Ok(value) = CString::new(value.as_bytes()) {
        // SAFETY: both are C strings. The constructor runs before the program's first thread.
        unsafe { libc::setenv(name.as_ptr(), value.as_ptr(), 1) };
    }
}

/// Runs `handler` when the process exits, before the handlers that are registered already. Where libc has no room for
/// it, false.
pub fn at_exit(handler: extern "C" fn()) -> bool {
    // SAFETY: the handler is a function of this library, which is not unloaded before it runs: glibc runs the handlers
    // of a library when that is closed.
    unsafe { libc::atexit(handler) == 0 }
}

/// Runs `handler` when the process ends by `quick_exit`. As [`at_exit`].
pub fn at_quick_exit(handler: extern "C" fn()) -> bool {
    unsafe extern "C" {
        safe fn at_quick_exit(handler: extern "C" fn()) -> c_int;
    }
    at_quick_exit(handler) == 0
}

/// Runs `before` in a process that forks, then `parent` in it and `child` in the child.
pub fn at_fork(
    before: unsafe extern "C" fn(),
    parent: unsafe extern "C" fn(),
    child: unsafe extern "C" fn(),
) {
    // SAFETY: as in `at_exit`. When it fails, the process id still tells a child from its parent.
    unsafe { libc::pthread_atfork(Some(before), Some(parent), Some(child)) };
}

/// Runs `work` on a new thread, which begins on this thread's processor: it gets that as soon as the caller waits. With
/// threads that poll on every processor, as ROCr's do, a thread that begins elsewhere waits for milliseconds. False when
/// there can be no thread; then `work` is dropped.
pub fn spawn_here(work: Box<dyn FnOnce() + Send>) -> bool {
    struct Start {
        work: Box<dyn FnOnce() + Send>,
        /// Where the caller may run, and so the new thread from its first moment on.
        processors: libc::cpu_set_t,
    }
    extern "C" fn run(start: *mut c_void) -> *mut c_void {
        // SAFETY: the box that `spawn_here` gave to this thread.
        let start = unsafe { Box::from_raw(start.cast::<Start>()) };
        // SAFETY: a set of the size given. Should it fail the thread stays where it is.
        unsafe { libc::sched_setaffinity(0, size_of_val(&start.processors), &start.processors) };
        guarded(Cost::Counters, (), start.work);
        std::ptr::null_mut()
    }
    // SAFETY: the sets are plain bits, filled by the calls; the attributes are initialised first and destroyed last;
    // the box goes to the thread if there is one. Without the attributes a thread begins anywhere, which will do.
    unsafe {
        let mut processors = std::mem::zeroed::<libc::cpu_set_t>();
        let size = size_of_val(&processors);
        let mut attributes = std::mem::zeroed::<libc::pthread_attr_t>();
        if libc::pthread_attr_init(&mut attributes) != 0 {
            return false;
        }
        libc::pthread_attr_setdetachstate(&mut attributes, libc::PTHREAD_CREATE_DETACHED);
        libc::pthread_attr_setstacksize(&mut attributes, STACK);
        let here = usize::try_from(libc::sched_getcpu());
        if libc::sched_getaffinity(0, size, &mut processors) == 0
            && let Some(here) = here.ok().filter(|&here| here < 8 * size)
        {
            let mut one = std::mem::zeroed::<libc::cpu_set_t>();
            libc::CPU_SET(here, &mut one);
            libc::pthread_attr_setaffinity_np(&mut attributes, size, &one);
        }
        let start = Box::into_raw(Box::new(Start { work, processors }));
        let mut thread = std::mem::zeroed::<libc::pthread_t>();
        let failed = libc::pthread_create(&mut thread, &attributes, run, start.cast()) != 0;
        libc::pthread_attr_destroy(&mut attributes);
        if failed {
            drop(Box::from_raw(start));
        }
        !failed
    }
}

/// Bytes of a thread's stack: ROCr's and HIP's functions run on it, and their debug builds need more than ours.
const STACK: usize = 1 << 20;

/// Starts a thread that gets none of the process's signals: its handlers run on its own threads.
///
/// `cost` is what an internal error in it may have cost.
pub fn spawn_quiet(
    name: &str,
    cost: Cost,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<std::thread::Thread> {
    // SAFETY: the sets are plain bits, filled by the calls; the mask is put back.
    let old = unsafe {
        let (mut all, mut old) = std::mem::zeroed::<(libc::sigset_t, libc::sigset_t)>();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut old);
        old
    };
    let thread = std::thread::Builder::new()
        .name(name.into())
        .stack_size(STACK)
        .spawn(move || {
            // SAFETY: only this thread's timers: its short pauses end when they are over, not 50 µs later.
            unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1000) };
            guarded(cost, (), work);
        });
    // SAFETY: as above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &old, std::ptr::null_mut()) };
    thread.map(|handle| handle.thread().clone())
}

/// From now on the calling thread never takes the processor from another one when it wakes up: it runs where one is
/// free, or when it is its turn. Where a sandbox does not allow that, nothing changes.
pub fn give_way() {
    // SAFETY: plain numbers; all zero is the only priority that the policy has. Changes this thread only.
    unsafe {
        let parameters = std::mem::zeroed::<libc::sched_param>();
        libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const parameters);
    }
}

thread_local! {
    static THREAD_ID: Cell<u32> = const { Cell::new(0) };
}

/// Clocks that a runtime may take its time from, the likeliest first: ROCr's is the first, hsa-sim's the second.
pub const CLOCKS: [libc::clockid_t; 3] = [
    libc::CLOCK_BOOTTIME,
    libc::CLOCK_MONOTONIC,
    libc::CLOCK_MONOTONIC_RAW,
];

/// What a clock says.
pub fn clock_nanoseconds(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is to be written.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Sleeps while `word` is `value`, for `limit` at most; may wake up for no reason. A signal handler may call it.
pub fn wait_while(word: &AtomicU32, value: u32, limit: Option<Duration>) {
    let limit = limit.map(|limit| libc::timespec {
        tv_sec: limit.as_secs() as libc::time_t,
        tv_nsec: limit.subsec_nanos().into(),
    });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: FUTEX_WAIT looks at the word and, where it is not null, at the time, which is relative.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
            value,
            limit,
        )
    };
}

/// Wakes up all threads that sleep in [`wait_while`], after a change of `word`. A signal handler may call it.
pub fn wake_all(word: &AtomicU32) {
    // SAFETY: FUTEX_WAKE only uses the word's address.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
            i32::MAX,
        )
    };
}

/// The calling thread's id (`gettid`), asked for once a thread.
pub fn thread_id() -> u32 {
    match THREAD_ID.get() {
        0 => {
            // SAFETY: only asks.
            let new = unsafe { libc::gettid() } as u32;
            THREAD_ID.set(new);
            new
        }
        known => known,
    }
}

/// In the child of a fork: its thread has another id than the one that forked.
pub fn forget_thread_id() {
    THREAD_ID.set(0);
}

/// Fails where a file of `size` bytes is larger than RLIMIT_FSIZE: writing it would end the program with SIGXFSZ.
pub fn allows_file_size(size: u64) -> io::Result<()> {
    let mut limit = std::mem::MaybeUninit::<libc::rlimit>::zeroed();
    // SAFETY: fills the limit.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, limit.as_mut_ptr()) } == 0;
    // SAFETY: zeroed above, all bits are a limit.
    let limit = unsafe { limit.assume_init() }.rlim_cur;
    match known && limit != libc::RLIM_INFINITY && size > limit {
        true => Err(io::Error::from_raw_os_error(libc::EFBIG)),
        false => Ok(()),
    }
}

/// Makes room for `length` bytes of a file from `start` on, so that a mapping of them can be written to.
pub fn reserve(file: &File, start: u64, length: u64) -> io::Result<()> {
    allows_file_size(start.saturating_add(length))?;
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

/// Maps bytes of a file of our own that are there.
pub fn map(file: &File, start: u64, length: usize) -> io::Result<MmapMut> {
    // SAFETY: the file was made by this process and is locked; its bytes are plain numbers to everybody who maps them.
    unsafe { MmapOptions::new().offset(start).len(length).map_mut(file) }
}

/// Of the library or program that holds `address`, what the loader knows.
fn file_of(address: *const c_void) -> Option<libc::Dl_info> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: dladdr fills `info` when it returns non-zero.
    unsafe { (libc::dladdr(address, info.as_mut_ptr()) != 0).then(|| info.assume_init()) }
}

/// What `symbol` is in that file; null where it has none of that name.
fn symbol_in(file: &libc::Dl_info, symbol: &CStr) -> *mut c_void {
    // SAFETY: the loader's name of a file; RTLD_NOLOAD only finds what is loaded; the handle's count is given back.
    unsafe {
        let handle = libc::dlopen(file.dli_fname, libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if handle.is_null() {
            return std::ptr::null_mut();
        }
        let found = libc::dlsym(handle, symbol.as_ptr());
        libc::dlclose(handle);
        found
    }
}

/// The file of the library that holds `address`, as the loader knows it.
pub fn path_of(address: *const c_void) -> Option<PathBuf> {
    let info = file_of(address).filter(|info| !info.dli_fname.is_null())?;
    // SAFETY: the name is a C string that lives as long as the library.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
}

/// Whether two functions are of the same library or program, as far as the loader knows them.
pub fn are_of_one_file(one: *const c_void, other: *const c_void) -> bool {
    let base = |address| file_of(address).map(|info| info.dli_fbase);
    base(one) == base(other)
}

/// The function of this name that is exported by the library, or the program, that holds `address`.
pub fn exported_by_file_of(address: *const c_void, symbol: &CStr) -> Option<*mut c_void> {
    let info = file_of(address).filter(|info| !info.dli_fname.is_null())?;
    let found = symbol_in(&info, symbol);
    (!found.is_null() && are_of_one_file(found, address)).then_some(found)
}

/// The file that holds this copy of devprof, if it exports `symbol` at `address`: the shared library, not the archive
/// in some executable.
pub fn exporting_library(symbol: &CStr, address: *const c_void) -> Option<PathBuf> {
    let info = file_of(address).filter(|info| !info.dli_fname.is_null())?;
    if symbol_in(&info, symbol).cast_const() != address {
        return None;
    }
    let path = path_of(address)?;
    Some(std::fs::canonicalize(&path).unwrap_or(path))
}

/// Whether LD_PRELOAD names a library.
pub fn is_preloaded(library: &Path) -> bool {
    let list = env("LD_PRELOAD").unwrap_or_default();
    let mut names = list
        .as_bytes()
        .split(|byte| matches!(byte, b' ' | b':'))
        .map(|name| Path::new(OsStr::from_bytes(name)));
    names.any(|name| name.file_name().is_some() && name.file_name() == library.file_name())
}

/// What the notes of this name and type in all loaded files lead to: each holds the distance from itself, 8 bytes, to
/// something in the same file.
pub fn notes(name: &CStr, kind: u32) -> Vec<*const c_void> {
    struct Search<'a> {
        name: &'a [u8],
        kind: u32,
        found: Vec<*const c_void>,
    }
    unsafe extern "C" fn visit(
        info: *mut libc::dl_phdr_info,
        _: usize,
        data: *mut c_void,
    ) -> c_int {
        // SAFETY: `data` is the search that `notes` passed; the dynamic linker gives a file's program headers, whose
        // segments are mapped.
        let (search, base, headers) = unsafe {
            let info = &*info;
            let headers = match info.dlpi_phdr.is_null() {
                true => &[],
                false => std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()),
            };
            (&mut *data.cast::<Search>(), info.dlpi_addr, headers)
        };
        let loaded = |from: u64, size: u64| {
            headers.iter().any(|header| {
                let start = base.wrapping_add(header.p_vaddr);
                header.p_type == libc::PT_LOAD
                    && from >= start
                    && size <= header.p_memsz
                    && from - start <= header.p_memsz - size
            })
        };
        for header in headers
            .iter()
            .filter(|header| header.p_type == libc::PT_NOTE)
        {
            let start = base.wrapping_add(header.p_vaddr);
            if !loaded(start, header.p_memsz) {
                continue;
            }
            // SAFETY: a loaded segment has it, readable as notes are.
            let bytes =
                unsafe { std::slice::from_raw_parts(start as *const u8, header.p_memsz as usize) };
            for (at, distance) in distances(bytes, search.name, search.kind) {
                let target = start.wrapping_add(at).wrapping_add(distance);
                if loaded(target, 8) {
                    search.found.push(target as *const c_void);
                }
            }
        }
        0
    }
    let mut search = Search {
        name: name.to_bytes_with_nul(),
        kind,
        found: Vec::new(),
    };
    // SAFETY: `visit` gets back the pointer given here.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    search.found
}

/// The 8-byte descriptors of a note segment's notes of one name and type, with their places.
fn distances(mut bytes: &[u8], name: &[u8], kind: u32) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    let whole = bytes.len();
    while let Some((head, rest)) = bytes.split_at_checked(12) {
        let word = |n: usize| u32::from_le_bytes([head[n], head[n + 1], head[n + 2], head[n + 3]]);
        let (name_size, size) = (word(0) as usize, word(4) as usize);
        let at = name_size.next_multiple_of(4);
        let Some(end) = at.checked_add(size).filter(|&end| end <= rest.len()) else {
            break;
        };
        if word(8) == kind
            && rest.get(..name_size) == Some(name)
            && let Ok(distance) = rest[at..end].try_into()
        {
            let place = whole - rest.len() + at;
            found.push((place as u64, u64::from_le_bytes(distance)));
        }
        let Some(next) = rest.get(end.next_multiple_of(4)..) else {
            break;
        };
        bytes = next;
    }
    found
}

/// Keeps the file that holds `address` in the process, if it is a library, also when it is closed.
pub fn stay(address: *const c_void) {
    if let Some(info) = file_of(address).filter(|info| !info.dli_fname.is_null()) {
        // SAFETY: RTLD_NOLOAD only finds what is loaded; the handle is kept.
        unsafe {
            libc::dlopen(
                info.dli_fname,
                libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE,
            );
        }
    }
}

// What compiler-rt's host runtime (InstrProfilingFile.c, InstrProfilingMerge.c, InstrProfilingNameVar.c) shows of its
// file names, if the program is linked with it: weak references, which are null where it is not. Its symbols are hidden,
// so that the shared library never sees a program's.
std::arch::global_asm!(
    ".pushsection .data.rel.ro.devprof_host,\"aw\",@progbits",
    ".weak __llvm_profile_get_filename",
    ".weak __llvm_profile_filename",
    ".weak lprofGetLoadModuleSignature",
    ".hidden devprof_host_profile",
    ".globl devprof_host_profile",
    ".balign 8",
    "devprof_host_profile:",
    ".quad __llvm_profile_get_filename",
    ".quad __llvm_profile_filename",
    ".quad lprofGetLoadModuleSignature",
    ".popsection",
);

#[repr(C)]
struct HostProfile {
    get_filename: Option<unsafe extern "C" fn() -> *const c_char>,
    filename: *const c_char,
    signature: Option<unsafe extern "C" fn() -> u64>,
}

unsafe extern "C" {
    static devprof_host_profile: HostProfile;
}

/// LLVM's host runtime in this program, if it can be asked.
pub fn profile_runtime() -> Option<Runtime> {
    // SAFETY: written by the linker and never after.
    let (get, compiled, signature) = unsafe {
        let HostProfile {
            get_filename,
            filename,
            signature,
        } = &devprof_host_profile;
        ((*get_filename)?, *filename, *signature)
    };
    // SAFETY: `get` returns a C string from malloc that is ours, or null, or a literal of no bytes where there is no
    // name; the variable is a C string that nobody changes, and the signature is computed from the program's sections.
    unsafe {
        let text = |text: *const c_char| match text.is_null() {
            true => Vec::new(),
            false => CStr::from_ptr(text).to_bytes().to_vec(),
        };
        let told = get();
        let name = text(told);
        if !name.is_empty() {
            libc::free(told.cast_mut().cast());
        }
        Some(Runtime {
            name,
            compiled: text(compiled),
            signature: signature.map_or(0, |signature| signature()),
        })
    }
}

/// The host's name, as `gethostname` has it.
pub fn host_name() -> Option<OsString> {
    let mut name = [0u8; 256];
    // SAFETY: one byte less than there is, so that the last stays 0.
    if unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) } != 0 {
        return None;
    }
    let end = name.iter().position(|&b| b == 0)?;
    Some(OsString::from_vec(name[..end].to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of the calling thread's stack.
    fn stack_size() -> usize {
        // SAFETY: the attributes are filled by the first call and destroyed by the last.
        unsafe {
            let mut attributes = std::mem::zeroed::<libc::pthread_attr_t>();
            assert_eq!(
                libc::pthread_getattr_np(libc::pthread_self(), &mut attributes),
                0
            );
            let (mut base, mut size) = (std::ptr::null_mut(), 0);
            libc::pthread_attr_getstack(&attributes, &mut base, &mut size);
            libc::pthread_attr_destroy(&mut attributes);
            size
        }
    }

    #[test]
    fn threads_have_a_mebibyte_of_stack() {
        let (send, sizes) = std::sync::mpsc::channel();
        let other = send.clone();
        assert!(spawn_here(Box::new(move || {
            let _ = other.send(stack_size());
        })));
        spawn_quiet("test", Cost::Counters, move || {
            let _ = send.send(stack_size());
        })
        .expect("a thread");
        let sizes: Vec<usize> = sizes.iter().collect();
        assert_eq!(sizes.len(), 2);
        assert!(sizes.iter().all(|&size| size >= 1 << 20), "{sizes:?}");
    }

    #[test]
    fn a_thread_that_gives_way_is_scheduled_so() {
        // SAFETY: only asks.
        let policy = || unsafe { libc::sched_getscheduler(0) };
        let given = std::thread::spawn(move || {
            give_way();
            policy()
        });
        assert_eq!(given.join().expect("no panic"), libc::SCHED_BATCH);
        assert_eq!(policy(), libc::SCHED_OTHER);
    }
}
