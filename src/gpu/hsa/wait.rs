//! Waits for the kernels that were launched: if HIP is in the process, with HIP, and then for HSA's signal handlers;
//! otherwise by the program's queues.

use super::api::Api;
use super::{hip, queues};
use crate::gpu::runtime::{Wait, Waited};
use crate::support::panic_guard::{Cost, guarded};
use crate::support::sync::lock;
use crate::sys::threads;
use hsa_abi::{HSA_SIGNAL_CONDITION_LT, SignalHandle, SignalValue, Status};
use std::ffi::c_void;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

/// A wait that has begun.
struct HsaWait {
    api: &'static Api,
    /// HIP is in the process.
    hip: bool,
    /// Receives a message when HIP's devices are done, and is disconnected when the handlers are. `None`: do not wait
    /// for HIP.
    done: Option<Receiver<()>>,
    start: Instant,
    limit: Duration,
}

/// Begins to wait, for `limit` at most. `all`: also for HIP, whose wait has no limit and gets a thread.
pub fn begin(api: &'static Api, all: bool, limit: Duration) -> Box<dyn Wait> {
    let hip = hip::is_loaded();
    let done = (hip && all).then(|| {
        let (done, is_done) = mpsc::channel();
        let active = ActiveWait::begin();
        let work = move || {
            let _active = active;
            hip::wait_for_devices();
            // The receiver is dropped if the limit was reached.
            let _ = done.send(());
            pass_handlers(api);
        };
        // If the thread cannot be created, `done` is dropped, and the receiver is disconnected.
        threads::spawn_here(Box::new(|| guarded(Cost::Counters, (), work)));
        is_done
    });
    Box::new(HsaWait {
        api,
        hip,
        done,
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
}

impl Wait for HsaWait {
    fn kernels(&mut self) -> Waited {
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

    fn handlers(self: Box<Self>) {
        if let Some(done) = &self.done {
            // Returns when the thread ends, or at the limit.
            let _ = done.recv_timeout(self.rest());
        }
    }
}

/// Waits until ROCr's event thread has called the handlers of all signals that are complete now.
///
/// HIP's wait ends when the device is done. The handler in which HIP records that may still run. A process that exits
/// at this moment destroys HIP's state under the handler and crashes.
fn pass_handlers(api: &Api) {
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
    let mut signal = SignalHandle(0);
    // SAFETY: no consumers are specified, so any agent may use the signal.
    if unsafe { (api.hsa_signal_create)(0, 0, std::ptr::null(), &raw mut signal) }
        != Status::SUCCESS
    {
        return;
    }
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
    if status == Status::SUCCESS {
        // Returns after the handler's last call.
        let _ = is_done.recv();
    } else {
        // SAFETY: the handler was not registered and will never be called.
        drop(unsafe { Box::from_raw(passes) });
    }
    // SAFETY: created above; the handler was removed or never registered.
    unsafe { (api.hsa_signal_destroy)(signal) };
}
