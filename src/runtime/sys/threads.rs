//! devprof's own threads, and the calling thread's id.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::io;
use std::thread::{Builder, Thread};

/// Runs `work`, which must not panic, on a new thread that starts on the caller's processor. It runs as soon as the
/// caller waits. ROCr's threads poll on every processor, so a thread that starts elsewhere may wait for milliseconds.
/// Returns false if the thread cannot be created; `work` is dropped then.
pub fn spawn_here(work: Box<dyn FnOnce() + Send>) -> bool {
    struct Start {
        work: Box<dyn FnOnce() + Send>,
        /// The caller's affinity, which the new thread gets as soon as it runs.
        processors: libc::cpu_set_t,
    }
    extern "C" fn run(start: *mut c_void) -> *mut c_void {
        // SAFETY: the box that `spawn_here` gave to this thread.
        let start = unsafe { Box::from_raw(start.cast::<Start>()) };
        // SAFETY: a set of the size given. If this fails, the thread stays on its processor.
        unsafe { libc::sched_setaffinity(0, size_of_val(&start.processors), &start.processors) };
        (start.work)();
        std::ptr::null_mut()
    }
    // SAFETY: the sets are plain bits, filled by the calls; the attributes are initialized first and destroyed last;
    // the thread owns the box if it was created. If an attribute cannot be set, the thread starts on any processor.
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

/// The size of a thread's stack, bytes. ROCr's and HIP's functions run on it; their debug builds need a large one.
const STACK: usize = 1 << 20;

/// Runs `work`, which must not panic, on a new thread with all signals blocked: the program's signal handlers run on the
/// program's threads only.
pub fn spawn_without_signals(
    name: &str,
    work: impl FnOnce() + Send + 'static,
) -> io::Result<Thread> {
    // SAFETY: the sets are plain bits, filled by the calls; the mask is restored below.
    let old = unsafe {
        let (mut all, mut old) = std::mem::zeroed::<(libc::sigset_t, libc::sigset_t)>();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut old);
        old
    };
    let thread = Builder::new()
        .name(name.into())
        .stack_size(STACK)
        .spawn(move || {
            // SAFETY: affects this thread only. Short sleeps then end on time, not 50 µs late.
            unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1000) };
            work();
        });
    // SAFETY: as above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &old, std::ptr::null_mut()) };
    thread.map(|handle| handle.thread().clone())
}

/// Runs the calling thread under SCHED_BATCH, so that its wake-ups do not preempt other threads. Does nothing in a
/// sandbox that forbids the call.
pub fn do_not_preempt() {
    // SAFETY: plain numbers; 0 is the only priority of the policy. Affects this thread only.
    unsafe {
        let parameters = std::mem::zeroed::<libc::sched_param>();
        libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const parameters);
    }
}

/// Until it is dropped, the calling thread cannot be cancelled (`pthread_cancel`). A pending cancellation takes effect at
/// the program's next cancellation point after that.
pub struct Uncancelled(c_int);

impl Uncancelled {
    pub fn begin() -> Uncancelled {
        let mut old = 0;
        // SAFETY: writes the old state. Cannot fail with this state (pthread.h).
        unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &raw mut old) };
        Uncancelled(old)
    }
}

impl Drop for Uncancelled {
    fn drop(&mut self) {
        // SAFETY: the state that the thread had before.
        unsafe { pthread_setcancelstate(self.0, std::ptr::null_mut()) };
    }
}

/// See pthread.h.
const PTHREAD_CANCEL_DISABLE: c_int = 1;

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

/// Whether the calling thread is the process's only one. False if that cannot be found out.
pub fn is_only_thread() -> bool {
    std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.take(2).count() == 1)
}

thread_local! {
    static THREAD_ID: Cell<u32> = const { Cell::new(0) };
}

/// The calling thread's id (`gettid`), cached for each thread.
pub fn thread_id() -> u32 {
    match THREAD_ID.get() {
        0 => {
            // SAFETY: only returns a value.
            let new = unsafe { libc::gettid() } as u32;
            THREAD_ID.set(new);
            new
        }
        known => known,
    }
}

/// To be called in the child of a fork: its thread has a new id.
pub fn forget_thread_id() {
    THREAD_ID.set(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size of the calling thread's stack, bytes.
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
        spawn_without_signals("test", move || {
            let _ = send.send(stack_size());
        })
        .expect("a thread");
        let sizes: Vec<usize> = sizes.iter().collect();
        assert_eq!(sizes.len(), 2);
        assert!(sizes.iter().all(|&size| size >= 1 << 20), "{sizes:?}");
    }

    #[test]
    fn a_thread_that_does_not_preempt_runs_under_sched_batch() {
        // SAFETY: only returns a value.
        let policy = || unsafe { libc::sched_getscheduler(0) };
        let thread = std::thread::spawn(move || {
            do_not_preempt();
            policy()
        });
        assert_eq!(thread.join().expect("no panic"), libc::SCHED_BATCH);
        assert_eq!(policy(), libc::SCHED_OTHER);
    }
}
