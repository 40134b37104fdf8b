//! The work of the wrappers of the driver's functions (`exports/cuda.rs`): they report the code that the program loads if
//! CUPTI is not used.

use super::observed;
use super::registry::registry;
use super::{instrument, primary, subscriber, without_cupti};
use crate::gpu::observers;
use crate::gpu::owner::is_owner;
use crate::support::panic_guard::{Cost, guarded};
use cuda_abi::cupti::*;
use cuda_abi::driver::*;
use std::ffi::{c_uint, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

pub use super::driver::address as driver_function;
pub use super::instrument::{LINK_DATA, LINK_FILE};

/// A program has a wrapper.
static IS_HANDED_OUT: AtomicBool = AtomicBool::new(false);

/// Whether a program has got a wrapper from `dlsym` or `cuGetProcAddress`, or has called one.
pub fn is_handed_out() -> bool {
    IS_HANDED_OUT.load(Ordering::Relaxed)
}

/// A program has a wrapper.
pub fn handed_out() {
    IS_HANDED_OUT.store(true, Ordering::Relaxed);
}

/// Calls a function of the driver, and reports the call if modules are found without CUPTI. If that was requested, the driver gets
/// instrumented PTX; if it does not accept that, it gets the program's.
///
/// # Safety
/// These are the arguments of the function with this number.
pub unsafe fn observe(
    id: c_uint,
    arguments: *mut c_void,
    call: &mut dyn FnMut() -> CUresult,
) -> CUresult {
    // SAFETY: the caller's promise.
    unsafe {
        let instrumented = match instrument::instrumented(id, arguments) {
            None => return observe_call(id, arguments, call),
            Some(Ok(instrumented)) => instrumented,
            Some(Err(loss)) => {
                let result = observe_call(id, arguments, call);
                if result == CUresult::SUCCESS {
                    loss.report();
                }
                return result;
            }
        };
        let attempt = observe_call(id, arguments, &mut || instrumented.load(call));
        if attempt == CUresult::SUCCESS {
            instrumented.report_losses();
            return attempt;
        }
        instrumented.restore();
        let result = observe_call(id, arguments, call);
        if result == CUresult::SUCCESS {
            instrumented.report_refused(attempt);
        }
        result
    }
}

/// # Safety
/// As for [`observe`].
unsafe fn observe_call(
    id: c_uint,
    arguments: *const c_void,
    call: &mut dyn FnMut() -> CUresult,
) -> CUresult {
    let is_observed = without_cupti::is_active();
    if !is_observed && subscriber::was_started() {
        return call();
    }
    let mut ending = None;
    if is_observed {
        // SAFETY: the caller's promise.
        guarded(Cost::Counters, (), || unsafe {
            ending = begin(id, arguments);
        });
    }
    let result = call();
    guarded(Cost::Counters, (), || {
        if !is_observed {
            if result != CUresult::SUCCESS {
                return;
            }
            if let Some(drain) = observers::drain() {
                drain.cuda_used();
            }
        }
        if without_cupti::is_active() {
            // SAFETY: the caller's promise.
            unsafe { end(id, arguments, result, ending) };
        }
    });
    result
}

/// Reports a call as CUPTI does.
///
/// # Safety
/// These are the arguments of the function with this number. `result`: null before the call.
unsafe fn report(id: c_uint, arguments: *const c_void, result: *const CUresult) {
    let Some(kind) = observed::kind(id) else {
        return;
    };
    let data = CUpti_CallbackData {
        callbackSite: if result.is_null() {
            CUPTI_API_ENTER
        } else {
            CUPTI_API_EXIT
        },
        functionName: std::ptr::null(),
        functionParams: arguments,
        functionReturnValue: result.cast(),
        symbolName: std::ptr::null(),
        context: CUcontext::NULL,
        contextUid: 0,
        correlationData: std::ptr::null_mut(),
        correlationId: 0,
    };
    // SAFETY: the caller's promise.
    unsafe { observed::report_call(kind, &data) };
}

/// A primary context that a call may destroy.
type Ending = Option<(CUdevice, CUcontext)>;

/// Before a call. Returns the primary context that it may destroy.
///
/// # Safety
/// As for [`report`].
unsafe fn begin(id: c_uint, arguments: *const c_void) -> Ending {
    if !is_owner() {
        return None;
    }
    // SAFETY: the caller's promise.
    unsafe {
        report(id, arguments, std::ptr::null());
        let device = match id {
            cbid::cuDevicePrimaryCtxRelease_v2 | cbid::cuDevicePrimaryCtxReset_v2 => {
                (*arguments.cast::<cuDevicePrimaryCtxReset_params>()).dev
            }
            cbid::cuGreenCtxDestroy => {
                primary::device_of_green((*arguments.cast::<cuGreenCtxDestroy_params>()).hCtx)?
            }
            _ => return None,
        };
        let is_ending = id == cbid::cuDevicePrimaryCtxReset_v2 || primary::is_unused(device);
        let context = primary::primary_context(device).filter(|_| is_ending)?;
        Some((device, context))
    }
}

/// After a call.
///
/// # Safety
/// As for [`report`]. Output arguments are valid if the call has succeeded.
unsafe fn end(id: c_uint, arguments: *const c_void, result: CUresult, ending: Ending) {
    if !is_owner() {
        return;
    }
    let is_success = result == CUresult::SUCCESS;
    if let Some((device, context)) = ending.filter(|_| is_success) {
        let is_reset = id == cbid::cuDevicePrimaryCtxReset_v2;
        if is_reset || primary::primary_context(device).is_none() {
            registry().remove_context(context);
        }
    }
    // SAFETY: the caller's promise.
    unsafe { report(id, arguments, &raw const result) };
}
