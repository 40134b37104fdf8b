//! Signals that end the process. devprof installs its handler for those that have their default action when the first
//! executable is frozen. The handler asks the thread of [`super::snapshot`] for a drain, waits for it, restores the
//! default action and raises the signal again, so that the process ends as it would without devprof. Handlers of the
//! program are never replaced. FFI to libc; the handler is async-signal-safe.

use crate::sys::{clock, futex, threads, writes};
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
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

/// What the handler needs and cannot create.
struct Prepared {
    limit: Duration,
    too_late: String,
}

static PREPARED: OnceLock<Prepared> = OnceLock::new();

/// Installs the handlers. The thread that answers must be running or being started. `limit`: the longest time for a
/// drain.
pub fn install(limit: Duration) {
    PREPARED.get_or_init(|| {
        let limit = limit.min(MAX_WAIT);
        Prepared {
            limit,
            too_late: format!(
                "devprof: a signal ends the process, and device counters could not be saved within {} ms: the thread that received it may hold a lock that a drain needs, or a copy takes longer; what was counted since the last drain is lost (DEVPROF_SNAPSHOT_MS reduces that)\n",
                limit.as_millis()
            ),
        }
    });
    PROCESS.store(std::process::id(), Ordering::SeqCst);
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

/// Makes the calling thread the one that answers requests.
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

/// Must not allocate, lock or panic.
extern "C" fn handler(signal: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
    // The thread itself cannot answer, and a forked child does not have it.
    let is_answered = PROCESS.load(Ordering::SeqCst) == std::process::id()
        // SAFETY: only returns a value.
        && THREAD.load(Ordering::SeqCst) != unsafe { libc::gettid() } as u32;
    if is_answered && let Some(prepared) = PREPARED.get() {
        let request = REQUESTED.fetch_add(1, Ordering::SeqCst).wrapping_add(1);
        futex::wake_all(&REQUESTED);
        if !wait_for_answer(request, prepared.limit) {
            writes::to_stderr(prepared.too_late.as_bytes());
        }
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
