//! Waits for running kernels.

use super::driver::{self, Current, Driver};
use super::registry::registry;
use crate::gpu::runtime::{Wait, Waited};
use crate::support::panic_guard::{Cost, guarded};
use crate::sys::threads;
use cuda_abi::driver::CUcontext;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Does not wait.
struct NoWait;

impl Wait for NoWait {
    fn kernels(&mut self) -> Waited {
        Waited::Done
    }

    fn handlers(self: Box<Self>) {}
}

struct CudaWait {
    /// Receives a message when the contexts are idle.
    done: Receiver<()>,
    start: Instant,
    limit: Duration,
}

/// Begins to wait for the contexts that have instrumented modules.
pub fn begin(driver: &'static Driver, limit: Duration) -> Box<dyn Wait> {
    let contexts = {
        let registry = registry();
        // A wait for a context would make the program's capture fail. A later drain has the complete counts.
        if registry.captures > 0 {
            return Box::new(NoWait);
        }
        registry.instrumented_contexts()
    };
    Box::new(begin_contexts(driver, contexts, limit))
}

/// Waits for all contexts. False: something still runs after `limit`, or the wait is impossible. Does not wait during a
/// stream capture.
pub fn wait_for_all(limit: Duration) -> bool {
    let contexts = registry()
        .contexts
        .iter()
        .map(|context| context.handle)
        .collect();
    wait_for_contexts(contexts, limit)
}

/// Waits for a context, given its handle. The same result.
pub fn wait_for(context: u64, limit: Duration) -> bool {
    wait_for_contexts(vec![CUcontext(context as usize)], limit)
}

/// Whether no kernel runs in a context any more, within `limit`. Not known during a stream capture.
pub fn is_idle(driver: &'static Driver, context: CUcontext, limit: Duration) -> bool {
    registry().captures == 0
        && begin_contexts(driver, vec![context], limit).kernels() == Waited::Done
}

fn wait_for_contexts(contexts: Vec<CUcontext>, limit: Duration) -> bool {
    let Some(Ok(driver)) = driver::find() else {
        return true;
    };
    if registry().captures > 0 {
        return true;
    }
    begin_contexts(driver, contexts, limit).kernels() == Waited::Done
}

/// Begins to wait for contexts. The driver's wait has no limit, so it gets a thread.
fn begin_contexts(driver: &'static Driver, contexts: Vec<CUcontext>, limit: Duration) -> CudaWait {
    let (done, is_done) = mpsc::channel();
    let work = move || {
        for context in contexts {
            if let Ok(_current) = Current::enter(driver, context) {
                // SAFETY: a context is current. An error of a kernel makes the copies fail, which is reported.
                unsafe { (driver.cuCtxSynchronize)() };
            }
        }
        // The receiver is dropped if the limit was reached.
        let _ = done.send(());
    };
    // If the thread cannot be created, `done` is dropped, and the receiver is disconnected.
    threads::spawn_here(Box::new(|| guarded(Cost::Counters, (), work)));
    CudaWait {
        done: is_done,
        start: Instant::now(),
        limit,
    }
}

impl Wait for CudaWait {
    fn kernels(&mut self) -> Waited {
        match self
            .done
            .recv_timeout(self.limit.saturating_sub(self.start.elapsed()))
        {
            Ok(()) => Waited::Done,
            Err(RecvTimeoutError::Timeout) => Waited::TooLate,
            Err(RecvTimeoutError::Disconnected) => Waited::NoThread,
        }
    }

    fn handlers(self: Box<Self>) {}
}
