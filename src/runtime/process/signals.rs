//! Signals that end the process. devprof installs its handler for those that have their default action when the first
//! executable is frozen. The handler asks the thread of [`super::snapshot`] for a drain, waits for it, restores the
//! default action and raises the signal again, so that the process ends as it would without devprof. Handlers of the
//! program are never replaced. FFI to libc; the handler is async-signal-safe.
//!
//! A call that replaces the program ([`super::exec`]) asks for a drain in the same way, on the thread that calls it.

use crate::sys::threads::{self, Uncancelled};
use crate::sys::{clock, futex, writes};
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

/// SIGSEGV and similar signals are excluded: after them, any state may be corrupt. Snapshots save most counts.
const SIGNALS: [c_int; 4] = [libc::SIGABRT, libc::SIGTERM, libc::SIGINT, libc::SIGHUP];

/// The longest wait: the sender of a signal may wait for the process to end.
const MAX_WAIT: Duration = Duration::from_secs(2);

/// The process with the thread that answers. 0: there is none.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// That thread (`gettid`).
static THREAD: AtomicU32 = AtomicU32::new(0);
/// The number of requests, and of the last one that was answered.
static REQUESTED: AtomicU32 = AtomicU32::new(0);
static ANSWERED: AtomicU32 = AtomicU32::new(0);
/// A request is for a drain that waits for running kernels.
static WAITS_FOR_KERNELS: AtomicBool = AtomicBool::new(false);

/// The data that a handler needs and cannot create: the longest time that it waits, and the message after that.
struct Prepared {
    at_signal: (Duration, String),
    at_exec: (Duration, String),
}

static PREPARED: OnceLock<Prepared> = OnceLock::new();

/// Allows requests. The thread that answers must be running or being started. `limit`: the longest time for a drain, and
/// before it for running kernels.
pub fn prepare(limit: Duration) {
    PREPARED.get_or_init(|| {
        let prepared = |event, thread, limit: Duration| {
            let text = format!(
                "devprof: {event}, and device counters could not be saved within {} ms: the thread that {thread} it may hold a lock that a drain needs, or a copy takes longer; what was counted since the last drain is lost (DEVPROF_SNAPSHOT_MS reduces that)\n",
                limit.as_millis()
            );
            (limit, text)
        };
        let (signal, exec) = (limit.min(MAX_WAIT), limit.saturating_add(MAX_WAIT));
        Prepared {
            at_signal: prepared("a signal ends the process", "received", signal),
            at_exec: prepared("the program calls exec", "called", exec),
        }
    });
    PROCESS.store(std::process::id(), Ordering::SeqCst);
}

/// Installs the handlers, after [`prepare`].
pub fn install() {
    for signal in SIGNALS {
        // SAFETY: plain data, filled by the calls; the handler has the type that SA_SIGINFO requires.
        unsafe {
            let mut action = std::mem::zeroed::<libc::sigaction>();
            action.sa_sigaction = handler as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
            for other in SIGNALS {
                libc::sigaddset(&mut action.sa_mask, other);
            }
            let mut old = std::mem::zeroed::<libc::sigaction>();
            if libc::sigaction(signal, std::ptr::null(), &mut old) != 0
                || old.sa_sigaction != libc::SIG_DFL
            {
                continue;
            }
            // Another thread may have installed a handler meanwhile.
            if libc::sigaction(signal, &action, &mut old) == 0 && old.sa_sigaction != libc::SIG_DFL
            {
                libc::sigaction(signal, &old, std::ptr::null_mut());
            }
        }
    }
}

/// The calling thread answers requests from now on.
pub fn set_answering_thread() {
    THREAD.store(threads::thread_id(), Ordering::SeqCst);
}

/// Waits for a request, for `limit` at most. Returns its number.
pub fn wait(limit: Option<Duration>) -> Option<u32> {
    let answered = ANSWERED.load(Ordering::SeqCst);
    futex::wait_while(&REQUESTED, answered, limit);
    let requested = REQUESTED.load(Ordering::SeqCst);
    (requested != answered).then_some(requested)
}

/// Whether a request since the last call is for a drain that waits for running kernels.
pub fn take_waits_for_kernels() -> bool {
    WAITS_FOR_KERNELS.swap(false, Ordering::SeqCst)
}

/// Answers all requests up to this one.
pub fn answer(request: u32) {
    ANSWERED.store(request, Ordering::SeqCst);
    futex::wake_all(&ANSWERED);
}

/// Answers all requests. From now on, handlers do not wait.
pub fn release() {
    PROCESS.store(0, Ordering::SeqCst);
    answer(REQUESTED.load(Ordering::SeqCst));
}

/// The data for a request, if the thread that answers exists. That thread cannot answer itself, and a forked child does not
/// have it. Must not allocate, lock or panic.
fn prepared() -> Option<&'static Prepared> {
    let process = PROCESS.load(Ordering::SeqCst);
    let is_answered = process != 0
        && process == std::process::id()
        // SAFETY: only returns a value.
        && THREAD.load(Ordering::SeqCst) != unsafe { libc::gettid() } as u32;
    PREPARED.get().filter(|_| is_answered)
}

/// Requests a drain and waits for it. Must not allocate, lock or panic.
fn request_drain((limit, too_late): &(Duration, String)) {
    let request = REQUESTED.fetch_add(1, Ordering::SeqCst).wrapping_add(1);
    futex::wake_all(&REQUESTED);
    if !wait_for_answer(request, *limit) {
        writes::to_stderr(too_late.as_bytes());
    }
}

/// The program is about to be replaced: saves the counters, after the kernels that still run. Does nothing in a forked child.
/// Must not allocate, lock or panic.
pub fn save_before_exec() {
    if let Some(prepared) = prepared() {
        let _uncancelled = Uncancelled::begin();
        WAITS_FOR_KERNELS.store(true, Ordering::SeqCst);
        request_drain(&prepared.at_exec);
    }
}

/// Must not allocate, lock or panic.
extern "C" fn handler(signal: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
    if let Some(prepared) = prepared() {
        request_drain(&prepared.at_signal);
    }
    // SAFETY: plain data; async-signal-safe functions. If the signal does not end the process, as for process 1 of a
    // container, the program continues as if the signal had not been caught.
    unsafe {
        let mut default = std::mem::zeroed::<libc::sigaction>();
        default.sa_sigaction = libc::SIG_DFL;
        libc::sigaction(signal, &default, std::ptr::null_mut());
        let mut only = std::mem::zeroed::<libc::sigset_t>();
        libc::sigaddset(&mut only, signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &only, std::ptr::null_mut());
        libc::raise(signal);
    }
}

/// Waits until a request is answered, for `limit` at most. Returns false at the limit.
fn wait_for_answer(request: u32, limit: Duration) -> bool {
    let now = || clock::clock_nanoseconds(libc::CLOCK_MONOTONIC);
    let end = now().saturating_add(limit.as_nanos() as u64);
    loop {
        let answered = ANSWERED.load(Ordering::SeqCst);
        // The numbers may wrap around; requests are not that far apart.
        if request.wrapping_sub(answered) as i32 <= 0 {
            return true;
        }
        let rest = end.saturating_sub(now());
        if rest == 0 {
            return false;
        }
        futex::wait_while(&ANSWERED, answered, Some(Duration::from_nanos(rest)));
    }
}
