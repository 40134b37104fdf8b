//! Host threads of the model. They run no signal handlers of the program, and a panic in one ends the process.
//!
//! A thread that starts takes the dynamic loader's lock: glibc registers the destructors of its thread-local variables.
//! The program may hold that lock, in `dlclose`, while it waits for the GPU. Unlike the model, a real GPU does not need
//! host threads to run a kernel. So the model always keeps some spare threads that have already started.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

type Work = Box<dyn FnOnce() + Send>;

/// A thread that waits for its name and its work.
pub struct Spare {
    sender: Sender<(String, Work)>,
    thread: JoinHandle<()>,
    has_started: Arc<AtomicBool>,
}

/// The number of threads that a program may need while it holds the loader's lock: for its queue and for copies.
const NEEDED: usize = 4;
/// The number of spare threads. Those that are not needed are for [`optional`].
const SPARES: usize = 8;

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
    let spare = match ready.iter().position(Spare::has_started) {
        Some(started) => ready.remove(started),
        // The oldest one starts first.
        None if !ready.is_empty() => ready.remove(0),
        None => start()?,
    };
    fill(&mut ready);
    drop(ready);
    Ok(spare.run(name, work))
}

/// A thread for work that can also be done without it; `None` if only the threads that other work
/// may need have started.
pub fn optional() -> Option<Spare> {
    let mut ready = lock(&READY);
    let mut started = (0..ready.len()).filter(|&n| ready[n].has_started());
    let taken = started.nth(NEEDED).map(|last| ready.remove(last));
    fill(&mut ready);
    taken
}

impl Spare {
    fn has_started(&self) -> bool {
        self.has_started.load(Ordering::Relaxed)
    }

    /// Runs `work`, as [`spawn`] does.
    pub fn run(self, name: &str, work: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
        if self.sender.send((name.into(), Box::new(work))).is_err() {
            eprintln!("gpu-model: a spare thread ended before it got work");
            std::process::abort();
        }
        self.thread
    }
}

fn start() -> std::io::Result<Spare> {
    let (sender, receiver) = channel::<(String, Work)>();
    let has_started = Arc::new(AtomicBool::new(false));
    let started = has_started.clone();
    // SAFETY: the sets are plain data that the calls fill in; both calls get valid pointers.
    let before = unsafe {
        let mut all = std::mem::zeroed();
        let mut before = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        before
    };
    let thread = Builder::new().name("gpu-model".into()).spawn(move || {
        started.store(true, Ordering::Relaxed);
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
        has_started,
    })
}
