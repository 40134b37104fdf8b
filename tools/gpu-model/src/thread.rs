//! Host threads of the model: none of the program's signal handlers runs on them, and none ends unseen.
//!
//! A thread that starts takes the dynamic loader's lock (glibc does, to run the destructors of its variables later). The
//! program may hold that lock, in `dlclose`, and wait for the GPU. On hardware there is no thread that it could keep from
//! starting, so here some have always started already, and wait for work.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

type Work = Box<dyn FnOnce() + Send>;

/// A thread that waits for its name and its work.
struct Spare {
    give: Sender<(String, Work)>,
    thread: JoinHandle<()>,
}

/// As many as a program may need while it holds the loader's lock: its own queue, and those that copy.
const SPARES: usize = 4;

static READY: Mutex<Vec<Spare>> = Mutex::new(Vec::new());

/// Starts the threads that wait for work. Nothing is wrong if there can be none yet.
pub fn prepare() {
    fill(&mut READY.lock().unwrap_or_else(PoisonError::into_inner));
}

fn fill(ready: &mut Vec<Spare>) {
    while ready.len() < SPARES
        && let Ok(spare) = start()
    {
        ready.push(spare);
    }
}

/// Has a thread do `work`. A panic in it ends the process: the model cannot go on, and a program that waits for it must
/// not wait for ever.
pub fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    let mut ready = READY.lock().unwrap_or_else(PoisonError::into_inner);
    // The one that has waited longest has started.
    let spare = match ready.is_empty() {
        true => start()?,
        false => ready.remove(0),
    };
    fill(&mut ready);
    drop(ready);
    if spare.give.send((name.into(), Box::new(work))).is_err() {
        eprintln!("gpu-model: a thread has ended before its work");
        std::process::abort();
    }
    Ok(spare.thread)
}

fn start() -> std::io::Result<Spare> {
    let (give, work) = channel::<(String, Work)>();
    // SAFETY: the sets are plain data that the calls fill in; both calls are made with valid pointers.
    let before = unsafe {
        let mut all = std::mem::zeroed();
        let mut before = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        before
    };
    let thread = Builder::new().name("gpu-model".into()).spawn(move || {
        // Sleeps of some microseconds shall last that long.
        // SAFETY: PR_SET_TIMERSLACK takes a number of nanoseconds and touches no memory.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_000) };
        let Ok((name, work)) = work.recv() else {
            return;
        };
        if let Ok(name) = std::ffi::CString::new(name) {
            // SAFETY: PR_SET_NAME takes a C string.
            unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
        }
        if catch_unwind(AssertUnwindSafe(work)).is_err() {
            eprintln!("gpu-model: internal error");
            std::process::abort();
        }
    });
    // SAFETY: `before` is the set that the call above filled in.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
    Ok(Spare {
        give,
        thread: thread?,
    })
}
