//! Waiting until the kernels that were launched are done: for HIP, and HSA's handlers with it, where it is in the process;
//! else for the program's queues.

use super::api::Api;
use super::types::*;
use super::{hip, queues};
use crate::guard::lock;
use crate::host;
use std::ffi::c_void;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// A wait that is under way.
pub struct Quiesce {
    api: &'static Api,
    /// HIP is in the process.
    hip: bool,
    /// Gets a message when HIP's devices are done, and is disconnected when the handlers are, too. `None`: HIP is not to
    /// be waited for.
    done: Option<Receiver<()>>,
    start: Instant,
    limit: Duration,
}

/// How a wait for the devices ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    Done,
    TooLate,
    /// There is no thread that could wait for HIP.
    NoThread,
}

/// Begins to wait, for `limit` at most; for HIP on a thread of its own, as its wait has no limit, and only where it
/// `may_ask` HIP.
pub fn quiesce(api: &'static Api, may_ask: bool, limit: Duration) -> Quiesce {
    let hip = hip::is_loaded();
    let done = (hip && may_ask).then(|| {
        let (done, is_done) = mpsc::channel();
        let under_way = UnderWay::begin();
        // Without a thread `done` is dropped, and the other end is disconnected.
        host::spawn_here(Box::new(move || {
            let _under_way = under_way;
            hip::wait_for_devices();
            // Nobody listens any more when the limit was hit.
            let _ = done.send(());
            pass_handlers(api);
        }));
        is_done
    });
    Quiesce {
        api,
        hip,
        done,
        start: Instant::now(),
        limit,
    }
}

/// How many waits are under way, in this process.
static UNDER_WAY: Mutex<usize> = Mutex::new(0);
static IS_OVER: Condvar = Condvar::new();

struct UnderWay;

impl UnderWay {
    fn begin() -> UnderWay {
        *lock(&UNDER_WAY) += 1;
        UnderWay
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        *lock(&UNDER_WAY) -= 1;
        IS_OVER.notify_all();
    }
}

/// Waits, for `limit` at most, until no wait is under way any more, of whatever thread: a process that exits takes HIP
/// from under them.
pub fn settle(limit: Duration) {
    // The limit is all that there is to do about a wait that goes on.
    let _ = IS_OVER.wait_timeout_while(lock(&UNDER_WAY), limit, |count| *count > 0);
}

impl Quiesce {
    /// Waits until the devices are done.
    pub fn devices(&mut self) -> Waited {
        let rest = self.rest();
        if !self.hip {
            return match queues::wait(self.api, rest) {
                true => Waited::Done,
                false => Waited::TooLate,
            };
        }
        let waited = match self.done.as_ref().map(|done| done.recv_timeout(rest)) {
            None | Some(Ok(())) => return Waited::Done,
            Some(Err(RecvTimeoutError::Timeout)) => Waited::TooLate,
            Some(Err(RecvTimeoutError::Disconnected)) => Waited::NoThread,
        };
        self.done = None;
        waited
    }

    /// Waits until the handlers are done, after the devices.
    pub fn handlers(self) {
        if let Some(done) = &self.done {
            // The end of the thread, or the limit: there is nothing more to do in either case.
            let _ = done.recv_timeout(self.rest());
        }
    }

    fn rest(&self) -> Duration {
        self.limit.saturating_sub(self.start.elapsed())
    }
}

/// Waits until ROCr's event thread has been through all handlers whose signals are done by now.
///
/// HIP's wait ends when the device is done, while the handler in which HIP takes note of it may only begin to run. A
/// process that exits meanwhile destroys HIP's state under the handler and dies: at exit HIP must be left at rest.
fn pass_handlers(api: &Api) {
    struct Passes {
        calls: u32,
        done: Sender<()>,
    }
    unsafe extern "C" fn handler(_: SignalValue, data: *mut c_void) -> bool {
        // SAFETY: `data` is the box that `pass_handlers` gave away; only this handler uses it.
        let passes = unsafe { &mut *data.cast::<Passes>() };
        passes.calls += 1;
        // The thread goes through its signals in a circle: between the first call and the second it came by all.
        if passes.calls == 1 {
            return true;
        }
        // SAFETY: returning false ends the calls, so the box has no other user any more.
        let passes = unsafe { Box::from_raw(data.cast::<Passes>()) };
        let _ = passes.done.send(());
        false
    }
    let mut signal = SignalHandle(0);
    // SAFETY: no consumers named: any agent may use it.
    if unsafe { (api.hsa_signal_create)(0, 0, std::ptr::null(), &raw mut signal) }
        != Status::SUCCESS
    {
        return;
    }
    let (done, is_done) = mpsc::channel();
    let passes = Box::into_raw(Box::new(Passes { calls: 0, done }));
    // SAFETY: the signal's value is below 1 already, so the handler is called at once, with the box.
    let status = unsafe {
        (api.hsa_amd_signal_async_handler)(signal, SIGNAL_CONDITION_LT, 1, handler, passes.cast())
    };
    if status == Status::SUCCESS {
        // Ends when the handler has sent, or with the process.
        let _ = is_done.recv();
    } else {
        // SAFETY: the handler was not taken and will never be called.
        drop(unsafe { Box::from_raw(passes) });
    }
    // SAFETY: created above; the handler is done with it or was never there.
    unsafe { (api.hsa_signal_destroy)(signal) };
}
