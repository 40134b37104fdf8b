//! Host threads of the model. They run no signal handlers of the program, and a panic in one ends the process.
//!
//! They are not threads of the standard library: those take the dynamic loader's lock when they start, because glibc
//! registers the destructors of their thread-local variables. The program may hold that lock, in `dlopen` or `dlclose`,
//! while it waits for the GPU, and a real GPU runs kernels without it.

use std::ffi::{CStr, c_void};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The size of a thread's stack, bytes. The standard library's threads have the same.
const STACK: usize = 2 << 20;

/// A thread that was started. It goes on if this is dropped.
pub struct Thread {
    id: libc::pthread_t,
    has_ended: Arc<AtomicBool>,
    is_joined: bool,
}

struct Start {
    name: &'static CStr,
    work: Box<dyn FnOnce() + Send>,
    has_ended: Arc<AtomicBool>,
}

/// Locks a mutex, poisoned or not.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `work` on a new thread. A panic in it ends the process: the program might wait for the thread forever.
pub fn spawn(name: &'static CStr, work: impl FnOnce() + Send + 'static) -> io::Result<Thread> {
    let has_ended = Arc::new(AtomicBool::new(false));
    let start = Box::into_raw(Box::new(Start {
        name,
        work: Box::new(work),
        has_ended: has_ended.clone(),
    }));
    let mut id = 0;
    // SAFETY: the sets and attributes are plain data that the calls initialize. `run` gets the box that it expects.
    let error = unsafe {
        let mut all = std::mem::zeroed();
        let mut before = std::mem::zeroed();
        let mut attributes = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        libc::pthread_attr_init(&raw mut attributes);
        libc::pthread_attr_setstacksize(&raw mut attributes, STACK);
        let error = libc::pthread_create(&raw mut id, &raw const attributes, run, start.cast());
        libc::pthread_attr_destroy(&raw mut attributes);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut());
        error
    };
    if error != 0 {
        // SAFETY: from above; no thread has it.
        drop(unsafe { Box::from_raw(start) });
        return Err(io::Error::from_raw_os_error(error));
    }
    Ok(Thread {
        id,
        has_ended,
        is_joined: false,
    })
}

extern "C" fn run(start: *mut c_void) -> *mut c_void {
    // SAFETY: the box of `spawn`, which only this thread has.
    let start = unsafe { Box::from_raw(start.cast::<Start>()) };
    // The default slack of 50 microseconds would extend the model's sleeps of 20 microseconds.
    // SAFETY: PR_SET_TIMERSLACK takes a number of nanoseconds, PR_SET_NAME a C string.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1_000);
        libc::prctl(libc::PR_SET_NAME, start.name.as_ptr());
    }
    if catch_unwind(AssertUnwindSafe(start.work)).is_err() {
        eprintln!("gpu-model: internal error");
        std::process::abort();
    }
    start.has_ended.store(true, Ordering::Release);
    ptr::null_mut()
}

impl Thread {
    /// Whether the thread has done its work.
    pub fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    /// Whether it is the calling thread.
    pub fn is_current(&self) -> bool {
        // SAFETY: the thread is neither joined nor detached.
        unsafe { libc::pthread_equal(self.id, libc::pthread_self()) != 0 }
    }

    /// Waits until the thread has ended, unless it is the calling thread.
    pub fn join(mut self) {
        if !self.is_current() {
            // SAFETY: the thread is neither joined nor detached.
            unsafe { libc::pthread_join(self.id, ptr::null_mut()) };
            self.is_joined = true;
        }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        if !self.is_joined {
            // SAFETY: the thread is neither joined nor detached.
            unsafe { libc::pthread_detach(self.id) };
        }
    }
}
