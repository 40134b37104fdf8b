//! The functions that replace the program (`execve` and its family). Device memory is lost with it, so the counters are saved
//! before, as before a signal ends the process: by the thread of [`crate::process`], within a limit.
//!
//! Most calls are in the child of a fork, which has nothing to save: they read one word, or two and the process id after
//! `vfork`, and jump to the next library's function. The functions may be called in such a child of a process with threads,
//! and in signal handlers. Therefore nothing is allocated, no lock is taken and the dynamic loader is not called, unless a
//! library calls them before devprof's constructor.
//!
//! The arguments stay where they are, because some functions have a variable number of them. If the call fails, the program
//! continues, and so do devprof's drains.

use crate::process::leader;
use crate::process::request::Request;
use crate::sys::loader::{self, c_name};
use std::ffi::{CStr, c_int};
use std::sync::atomic::{AtomicPtr, Ordering};

/// Defines the functions, and [`FUNCTIONS`].
macro_rules! functions {
    ($($n:literal $name:ident = $devprof_name:ident;)*) => {
        $(
            /// # Safety
            /// As in `unistd.h`.
            #[unsafe(naked)]
            #[cfg_attr(feature = "shared", unsafe(export_name = stringify!($name)))]
            #[cfg_attr(not(feature = "shared"), unsafe(no_mangle))]
            unsafe extern "C" fn $devprof_name() {
                std::arch::naked_asm!(
                    // All registers with arguments, and the number of those in vector registers.
                    "push rdi",
                    "push rsi",
                    "push rdx",
                    "push rcx",
                    "push r8",
                    "push r9",
                    "push rax",
                    concat!("mov edi, ", $n),
                    "call {before}",
                    "mov r11, rax",
                    "pop rax",
                    "pop r9",
                    "pop r8",
                    "pop rcx",
                    "pop rdx",
                    "pop rsi",
                    "pop rdi",
                    "jmp r11",
                    before = sym before,
                )
            }
        )*

        /// The names of the functions, by number, and the next library's functions.
        static FUNCTIONS: [(&CStr, AtomicPtr<()>); [$($n),*].len()] = [$((
            c_name(concat!(stringify!($name), "\0")),
            AtomicPtr::new(std::ptr::null_mut()),
        )),*];
    };
}

functions! {
    0 execve = devprof_execve;
    1 execv = devprof_execv;
    2 execvp = devprof_execvp;
    3 execvpe = devprof_execvpe;
    4 execl = devprof_execl;
    5 execlp = devprof_execlp;
    6 execle = devprof_execle;
    7 fexecve = devprof_fexecve;
    8 execveat = devprof_execveat;
}

/// Saves the counters. Returns the next library's function with this number.
extern "C" fn before(number: usize) -> *const () {
    leader::request(Request::BeforeExec {});
    next(number)
}

fn next(number: usize) -> *const () {
    let Some((name, next)) = FUNCTIONS.get(number) else {
        return missing as *const ();
    };
    let mut found = next.load(Ordering::Relaxed);
    if found.is_null() {
        found = loader::next_function(name).cast();
        next.store(found, Ordering::Relaxed);
    }
    if found.is_null() {
        missing as *const ()
    } else {
        found
    }
}

/// Finds the next library's functions. To be called by the constructor.
pub fn find_next() {
    for number in 0..FUNCTIONS.len() {
        next(number);
    }
}

/// The C library has no such function (`execveat` before glibc 2.34).
extern "C" fn missing() -> c_int {
    // SAFETY: the calling thread's variable.
    unsafe { *libc::__errno_location() = libc::ENOSYS };
    -1
}
