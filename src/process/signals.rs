//! Signals that end the process. Where one has its default action when the first executable is frozen, devprof's handler
//! asks the thread of [`crate::snapshot`] for a drain, waits for it, puts the default action back and sends itself the
//! signal again, so that the process dies as it would have. A handler that the program installs is never touched.
//! FFI to libc; what the handler does is safe in a signal handler.

use crate::host;
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// SIGSEGV and its like are not among them: what is broken then is unknown. Snapshots save all but the last of it.
const SIGNALS: [c_int; 4] = [libc::SIGABRT, libc::SIGTERM, libc::SIGINT, libc::SIGHUP];

/// Whoever sent a signal may wait for the end.
const LONGEST: Duration = Duration::from_secs(2);

/// The process whose thread answers. 0: none does.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// That thread (`gettid`).
static THREAD: AtomicU32 = AtomicU32::new(0);
/// Requests so far, and the last one that was answered.
static REQUESTED: AtomicU32 = AtomicU32::new(0);
static ANSWERED: AtomicU32 = AtomicU32::new(0);

/// What the handler cannot make.
struct Prepared {
    limit: Duration,
    too_late: String,
}

static PREPARED: OnceLock<Prepared> = OnceLock::new();

/// Installs the handlers, where there is a thread that answers, or soon will be. `limit` is how long a drain may take.
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
            // Another thread may have installed one since.
            if libc::sigaction(signal, &ours, &mut old) == 0 && old.sa_sigaction != libc::SIG_DFL {
                libc::sigaction(signal, &old, std::ptr::null_mut());
            }
        }
    }
}

/// The calling thread is the one that answers.
pub fn answers_here() {
    THREAD.store(host::thread_id(), Ordering::SeqCst);
}

/// Waits for a request, for `limit` at most. Which one it is.
pub fn wait(limit: Option<Duration>) -> Option<u32> {
    let answered = ANSWERED.load(Ordering::SeqCst);
    host::wait_while(&REQUESTED, answered, limit);
    let requested = REQUESTED.load(Ordering::SeqCst);
    (requested != answered).then_some(requested)
}

/// All requests up to this one have been answered.
pub fn answer(request: u32) {
    ANSWERED.store(request, Ordering::SeqCst);
    host::wake_all(&ANSWERED);
}

/// From now on nobody answers: the handlers do not wait.
pub fn release() {
    PROCESS.store(0, Ordering::SeqCst);
    answer(REQUESTED.load(Ordering::SeqCst));
}

/// Nothing here allocates, locks or can panic.
extern "C" fn handler(signal: c_int, _: *mut libc::siginfo_t, _: *mut c_void) {
    // A fault of our own thread, or a child that was forked: nobody to wait for.
    let is_answered = PROCESS.load(Ordering::SeqCst) == std::process::id()
        // SAFETY: only asks.
        && THREAD.load(Ordering::SeqCst) != unsafe { libc::gettid() } as u32;
    if is_answered && let Some(prepared) = PREPARED.get() {
        let request = REQUESTED.fetch_add(1, Ordering::SeqCst).wrapping_add(1);
        host::wake_all(&REQUESTED);
        if !is_in_time(request, prepared.limit) {
            // SAFETY: bytes of that length. A stderr that takes no more is nobody's fault here.
            unsafe {
                let text = prepared.too_late.as_bytes();
                libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len());
            }
        }
    }
    // SAFETY: plain data; functions that a handler may call. Where the signal does not end the process, as in the first
    // process of a container, the program goes on as if it had not been caught.
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
    let now = || host::clock_nanoseconds(libc::CLOCK_MONOTONIC);
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
        host::wait_while(&ANSWERED, answered, Some(Duration::from_nanos(rest)));
    }
}
