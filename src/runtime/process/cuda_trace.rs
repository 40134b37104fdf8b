//! Starts the trace of CUDA.

use super::lifecycle::TRACED;
use crate::nvidia::subscriber::{self, Unobserved};
use crate::support::diagnostics;
use crate::support::features::HAS_TRACE;
use crate::support::panic_guard::{Cost, guarded};
use crate::support::settings::settings;
use crate::trace;
use std::sync::Once;

static STARTED: Once = Once::new();

/// Starts it, if a trace was requested. `unobserved`: why CUPTI does not report events to this instance of devprof.
pub fn start(unobserved: Option<Unobserved>) {
    if !HAS_TRACE {
        return;
    }
    STARTED.call_once(|| {
        guarded(Cost::Dispatches, (), || {
            let Some(pattern) = &settings().trace else {
                return;
            };
            if let Some(why) = unobserved {
                diagnostics::lost(format_args!(
                    "DEVPROF_TRACE: CUDA is not traced, because that needs CUPTI: {why}"
                ));
                return;
            }
            if !trace::start_cuda(pattern, TRACED) {
                return;
            }
            match subscriber::trace(trace::cuda_now) {
                Ok(()) => trace::cuda_started(),
                Err(error) => {
                    diagnostics::lost(format_args!("DEVPROF_TRACE: CUDA is not traced: {error}"));
                }
            }
        })
    });
}
