//! Waits for the kernels that were launched, by the program's queues. HIP, too, submits each kernel to a queue when it is
//! launched. Its own functions that wait would make all stream captures of the process invalid.

use super::api::Api;
use super::hip::{self, Refusal};
use super::queues;
use crate::gpu::runtime::{Wait, Waited};
use crate::support::sync::lock;
use crate::support::{unlimited, wait_limit};
use hsa_abi::{HSA_SIGNAL_CONDITION_LT, SignalValue, Status};
use std::ffi::c_void;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// How long the wait at the end of the process takes before HIP is asked whether a GPU has failed.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// A wait that has begun.
struct HsaWait {
    api: &'static Api,
    /// Also for HIP's queues.
    all: bool,
    /// See [`hip_callbacks`].
    hip: Option<Vec<usize>>,
    /// The process ends: what HIP has not submitted, and its handlers, are waited for, too.
    is_last: bool,
    /// Receives whether HIP has waited for its devices. `None`: do not wait for that.
    submitted: Option<HipWait>,
    start: Instant,
    limit: Duration,
}

/// The error callbacks of the queues that HIP has created, which it does at the first launch or copy. `None`: perhaps it has,
/// and their creation was not reported.
fn hip_callbacks() -> Option<Vec<usize>> {
    if !hip::is_loaded() {
        return Some(Vec::new());
    }
    let mut callbacks = queues::callbacks()?;
    callbacks.retain(|&callback| hip::contains(callback));
    Some(callbacks)
}

type HipWait = Receiver<Result<(), Refusal>>;

/// Lets HIP wait for its devices, on a thread.
fn wait_for_hip() -> HipWait {
    let active = ActiveWait::begin();
    unlimited::call(move || {
        let _active = active;
        hip::wait_for_devices()
    })
}

/// Begins to wait, for `limit` at most. `all`: also for HIP's kernels.
pub fn begin(api: &'static Api, all: bool, limit: Duration) -> Box<dyn Wait> {
    // The search takes the dynamic loader's lock, so it comes before all other locks.
    let hip = hip_callbacks();
    let is_hip_used = hip.as_ref().is_some_and(|callbacks| !callbacks.is_empty());
    let is_last = all && wait_limit::is_ending();
    let submitted = (is_last && is_hip_used && hip::submits_later()).then(wait_for_hip);
    Box::new(HsaWait {
        api,
        all,
        hip,
        is_last,
        submitted,
        start: Instant::now(),
        limit,
    })
}

/// The number of threads that wait for HIP.
static ACTIVE: Mutex<usize> = Mutex::new(0);
/// [`ACTIVE`] has decreased.
static IS_OVER: Condvar = Condvar::new();

struct ActiveWait;

impl ActiveWait {
    fn begin() -> ActiveWait {
        *lock(&ACTIVE) += 1;
        ActiveWait
    }
}

impl Drop for ActiveWait {
    fn drop(&mut self) {
        *lock(&ACTIVE) -= 1;
        IS_OVER.notify_all();
    }
}

/// Waits until no thread waits for HIP, for `limit` at most. To be called before the process destroys HIP.
pub fn wait_for_all(limit: Duration) {
    // The result does not matter: the process exits in any case.
    let _ = IS_OVER.wait_timeout_while(lock(&ACTIVE), limit, |count| *count > 0);
}

impl HsaWait {
    fn rest(&self) -> Duration {
        self.limit.saturating_sub(self.start.elapsed())
    }

    /// The packets in the queues of a GPU that has failed are never complete. Only HIP knows that, and to ask it makes captures
    /// invalid. So it is asked at the end of the process, and only if kernels do not end soon.
    fn wait_for_queues(&self, left_out: &[usize]) -> bool {
        let rest = self.rest();
        if !self.is_last || self.hip.as_ref().is_none_or(Vec::is_empty) {
            return queues::wait(self.api, rest, left_out);
        }
        queues::wait(self.api, rest.min(FIRST_WAIT), left_out)
            || wait_for_hip().recv_timeout(self.rest()) == Ok(Err(Refusal::Failed))
            || queues::wait(self.api, self.rest(), left_out)
    }
}

impl Wait for HsaWait {
    fn kernels(&mut self) -> Waited {
        let rest = self.rest();
        let submitted = match self.submitted.as_ref().map(|done| done.recv_timeout(rest)) {
            // A device that has failed executes nothing.
            None | Some(Ok(Ok(()) | Err(Refusal::Failed))) => Waited::Done,
            Some(Ok(Err(Refusal::Capturing))) => Waited::NotSubmitted,
            Some(Err(RecvTimeoutError::Timeout)) => Waited::TooLate,
            Some(Err(RecvTimeoutError::Disconnected)) => Waited::NoThread,
        };
        let left_out = match (self.all, &self.hip) {
            (false, Some(callbacks)) => &callbacks[..],
            _ => &[],
        };
        match (self.wait_for_queues(left_out), submitted) {
            (false, _) => Waited::TooLate,
            (true, Waited::Done) if self.all && self.hip.is_none() => Waited::Unobserved,
            (true, submitted) => submitted,
        }
    }

    fn handlers(self: Box<Self>) {
        let has_no_queues = self.hip.as_ref().is_some_and(Vec::is_empty);
        if self.is_last && !has_no_queues {
            pass_handlers(self.api, self.rest());
        }
    }
}

/// Waits until ROCr's event thread has called the handlers of all signals that are complete now, for `limit` at most.
///
/// HIP records in a handler that a command is complete. A process that exits at this moment destroys HIP's state under the
/// handler and crashes.
fn pass_handlers(api: &Api, limit: Duration) {
    struct Passes {
        calls: u32,
        done: Sender<()>,
    }
    unsafe extern "C" fn handler(_: SignalValue, data: *mut c_void) -> bool {
        // SAFETY: `data` is the box of `pass_handlers`; only this handler uses it.
        let passes = unsafe { &mut *data.cast::<Passes>() };
        passes.calls += 1;
        // The thread polls its signals in turn: between the first and the second call it has polled all of them.
        if passes.calls == 1 {
            return true;
        }
        // SAFETY: after a handler returns false it is not called again, so nothing else uses the box.
        let passes = unsafe { Box::from_raw(data.cast::<Passes>()) };
        let _ = passes.done.send(());
        false
    }
    let Ok(signal) = api.create_signal(0) else {
        return;
    };
    let (done, is_done) = mpsc::channel();
    let passes = Box::into_raw(Box::new(Passes { calls: 0, done }));
    // SAFETY: the handler gets the box. The signal's value is less than 1, so it is called immediately.
    let status = unsafe {
        (api.hsa_amd_signal_async_handler)(
            signal,
            HSA_SIGNAL_CONDITION_LT,
            1,
            handler,
            passes.cast(),
        )
    };
    if status != Status::SUCCESS {
        // SAFETY: the handler was not registered and will never be called.
        drop(unsafe { Box::from_raw(passes) });
    } else if is_done.recv_timeout(limit).is_err() {
        // The handler may still be called, so the signal is not destroyed.
        return;
    }
    // The handler was removed or never registered.
    api.destroy_signal(signal);
}
