//! Host threads of the model. They run no signal handlers of the program, and a panic in one ends the process.
//!
//! A thread that starts takes the dynamic loader's lock: glibc registers the destructors of its thread-local variables.
//! The program may hold that lock, in `dlclose`, while it waits for the GPU. Unlike the model, a real GPU does not need host
//! threads to run a kernel. So the model always keeps some spare threads that have already started.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

type Work = Box<dyn FnOnce() + Send>;

/// A thread that waits for its name and its work.
struct Spare {
    sender: Sender<(String, Work)>,
    thread: JoinHandle<()>,
}

/// The number of threads that a program may need while it holds the loader's lock: for its queue and for copies.
const SPARES: usize = 4;

static READY: Mutex<Vec<Spare>> = Mutex::new(Vec::new());

/// Locks a mutex, poisoned or not.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the spare threads. If that fails, [`spawn`] tries again.
pub fn prepare() {
    fill(&mut lock(&READY));
}

fn fill(ready: &mut Vec<Spare>) {
    while ready.len() < SPARES
        && let Ok(spare) = start()
    {
        ready.push(spare);
    }
}

/// Runs `work` on a spare thread. A panic in it ends the process: the program might wait for the thread forever.
pub fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    let mut ready = lock(&READY);
    // The oldest spare thread is the most likely to have finished starting.
    let spare = match ready.is_empty() {
        true => start()?,
        false => ready.remove(0),
    };
    fill(&mut ready);
    drop(ready);
    if spare.sender.send((name.into(), Box::new(work))).is_err() {
        eprintln!("gpu-model: a spare thread ended before it got work");
        std::process::abort();
    }
    Ok(spare.thread)
}

fn start() -> std::io::Result<Spare> {
    let (sender, receiver) = channel::<(String, Work)>();
    // SAFETY: the sets are plain data that the calls fill in; both calls get valid pointers.
    let before = unsafe {
        let mut all = std::mem::zeroed();
        let mut before = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        before
    };
    let thread = Builder::new().name("gpu-model".into()).spawn(move || {
        // The default slack of 50 microseconds would extend the model's sleeps of 20 microseconds.
        // SAFETY: PR_SET_TIMERSLACK takes a number of nanoseconds and accesses no memory.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_000) };
        let Ok((name, work)) = receiver.recv() else {
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
        sender,
        thread: thread?,
    })
}
