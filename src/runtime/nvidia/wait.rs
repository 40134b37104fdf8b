//! Waits for running kernels.

use super::driver::{self, Current, Driver};
use super::registry::{self, registry};
use crate::gpu::runtime::{ExecutableId, Wait, Waited};
use crate::support::diagnostics;
use crate::support::unlimited;
use crate::support::wait_limit::{self, Waiting};
use cuda_abi::driver::CUcontext;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

struct CudaWait {
    /// Receives a message when the contexts are idle. Without a thread that waits, the result.
    done: Result<Receiver<()>, Waited>,
    start: Instant,
    limit: Duration,
}

/// At the end of the process, a drain did not wait because of a stream capture. It has reported that all later counts are
/// lost.
static GAVE_UP: AtomicBool = AtomicBool::new(false);

/// Begins to wait for the contexts that have instrumented modules, for a drain.
pub fn begin(driver: &'static Driver, limit: Duration) -> Box<dyn Wait> {
    if wait_limit::is_ending() && registry::is_capturing() {
        GAVE_UP.store(true, Ordering::Relaxed);
    }
    let contexts = registry().instrumented_contexts();
    begin_contexts(driver, contexts, limit)
}

/// These modules are about to be unloaded: waits once for the kernels of their contexts. If kernels still run at the time
/// limit, their later counts in the modules are lost, which is reported.
pub fn before_unloading(modules: &[ExecutableId]) {
    let (mut contexts, mut ids): (Vec<CUcontext>, Vec<u32>) = {
        let registry = registry();
        let modules = modules.iter().filter_map(|&id| registry.module(id));
        modules.map(|module| (module.context, module.id)).unzip()
    };
    contexts.sort_unstable();
    contexts.dedup();
    // At exit, an earlier wait may have used the time up, and reported that.
    let Some(Ok(driver)) = driver::find().filter(|_| !wait_limit::is_used_up()) else {
        return;
    };
    let waiting = Waiting::begin();
    let waited = begin_contexts(driver, contexts, waiting.limit).kernels();
    let is_reported = waited == Waited::Capturing && GAVE_UP.load(Ordering::Relaxed);
    if waited != Waited::Done && !is_reported {
        ids.sort_unstable();
        let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
        diagnostics::lost(format_args!(
            "{waited}: what they count in CUDA module {}, which the program unloads, is lost",
            ids.join(", ")
        ));
    }
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
    begin_contexts(driver, vec![context], limit).kernels() == Waited::Done
}

fn wait_for_contexts(contexts: Vec<CUcontext>, limit: Duration) -> bool {
    let Some(Ok(driver)) = driver::find() else {
        return true;
    };
    let waited = begin_contexts(driver, contexts, limit).kernels();
    matches!(waited, Waited::Done | Waited::Capturing)
}

/// Begins to wait for contexts. The driver's wait has no limit, so it gets a thread.
fn begin_contexts(
    driver: &'static Driver,
    contexts: Vec<CUcontext>,
    limit: Duration,
) -> Box<dyn Wait> {
    let done = if contexts.is_empty() {
        Err(Waited::Done)
    } else if registry::is_capturing() {
        // A wait for a context would make the program's capture fail.
        Err(Waited::Capturing)
    } else if limit.is_zero() {
        // A thread would only remain.
        Err(Waited::TooLate)
    } else {
        Ok(unlimited::call(move || {
            for context in contexts {
                if let Ok(_current) = Current::enter(driver, context) {
                    // SAFETY: a context is current. An error of a kernel makes the copies fail, which is reported.
                    unsafe { (driver.cuCtxSynchronize)() };
                }
            }
        }))
    };
    Box::new(CudaWait {
        done,
        start: Instant::now(),
        limit,
    })
}

impl Wait for CudaWait {
    fn kernels(&mut self) -> Waited {
        let done = match &self.done {
            Ok(done) => done,
            Err(waited) => return *waited,
        };
        match done.recv_timeout(self.limit.saturating_sub(self.start.elapsed())) {
            Ok(()) => Waited::Done,
            Err(RecvTimeoutError::Timeout) => Waited::TooLate,
            Err(RecvTimeoutError::Disconnected) => Waited::NoThread,
        }
    }

    fn handlers(self: Box<Self>) {}
}
