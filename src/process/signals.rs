//! Signals that end the process. devprof installs its handler for those that have their default action when the first
//! executable is frozen. The handler asks the thread of [`super::snapshot`] for a drain, waits for it, restores the default
//! action and raises the signal again, so that the process ends as it would without devprof. Handlers of the program are
//! never replaced. FFI to libc; the handler is async-signal-safe.

use crate::sys::{clock, futex, threads};
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Not SIGSEGV and the like: after these, any state may be corrupt. Snapshots save most counts.
const SIGNALS: [c_int; 4] = [libc::SIGABRT, libc::SIGTERM, libc::SIGINT, libc::SIGHUP];

/// The longest wait: the sender of a signal may wait for the process to end.
const LONGEST: Duration = Duration::from_secs(2);

/// The process that has the thread. 0: none has.
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

/// Installs the handlers. A thread that answers runs, or is being started. `limit`: the longest time for a drain.
pub fn install(limit: Duration) {
    PREPARED.get_or_init(|| {
        let limit = limit.min(LONGEST);
        Prepared {
            limit,
            too_late: format!(
                "devprof: a signal ends the process, and device counters could not be saved within {} ms: the thread that got it may hold a lock that a drain needs, or a copy takes longer; what was counted since the last drain is lost (DEVPROF_SNAPSHOT_MS makes that less)\n",
                limit.as_millis()
            ),
        }
    });
    PROCESS.store(std::process::id(), Ordering::SeqCst);
    for signal in SIGNALS {
        // SAFETY: plain data, filled by the calls; the handler has the type that SA_SIGINFO asks for.
        unsafe {
            let mut ours = std::mem::zeroed::<libc::sigaction>();
            ours.sa_sigaction = handler as *const () as usize;
            ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
            for other in SIGNALS {
                libc::sigaddset(&mut ours.sa_mask, other);
            }
            let mut old = std::mem::zeroed::<libc::sigaction>();
            if libc::sigaction(signal, std::ptr::null(), &mut old) != 0
                || old.sa_sigaction != libc::SIG_DFL
            {
                continue;
            }
            // Another thread may have installed a handler meanwhile.
            if libc::sigaction(signal, &ours, &mut old) == 0 && old.sa_sigaction != libc::SIG_DFL {
                libc::sigaction(signal, &old, std::ptr::null_mut());
            }
        }
    }
}

/// The calling thread answers requests.
pub fn answers_here() {
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

/// From now on requests are not answered, and the handlers do not wait.
pub fn release() {
    PROCESS.store(0, Ordering::SeqCst);
    answer(REQUESTED.load(Ordering::SeqCst));
}

/// Nothing here allocates, locks or can panic.
extern "C" fn handler(signal: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
    // The thread itself cannot answer, and a forked child does not have it.
    let is_answered = PROCESS.load(Ordering::SeqCst) == std::process::id()
        // SAFETY: only asks.
        && THREAD.load(Ordering::SeqCst) != unsafe { libc::gettid() } as u32;
    if is_answered && let Some(prepared) = PREPARED.get() {
        let request = REQUESTED.fetch_add(1, Ordering::SeqCst).wrapping_add(1);
        futex::wake_all(&REQUESTED);
        if !is_in_time(request, prepared.limit) {
            // SAFETY: bytes of that length. If stderr cannot be written, the message is lost.
            unsafe {
                let text = prepared.too_late.as_bytes();
                libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len());
            }
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

/// Waits until a request is answered, for `limit` at most.
fn is_in_time(request: u32, limit: Duration) -> bool {
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
