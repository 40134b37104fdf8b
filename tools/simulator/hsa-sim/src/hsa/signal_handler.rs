//! Asynchronous handlers of signals.

use crate::results::Outcome;
use crate::signals::handlers::{self, Call, Handler};
use crate::signals::pool::get;
use crate::state::with;
use hsa_abi::*;
use std::ffi::c_void;

fn add(handler: Handler) -> Outcome {
    with(|_| Ok(()))?;
    handlers::add(handler)
}

pub unsafe fn hsa_amd_signal_async_handler(
    signal: SignalHandle,
    condition: u32,
    value: SignalValue,
    handler: SignalHandler,
    data: *mut c_void,
) -> Outcome {
    // SAFETY: the caller's promise.
    if signal == SignalHandle(0) || unsafe { get(signal) }.is_none() {
        return Err(Status::INVALID_SIGNAL);
    }
    if condition > HSA_SIGNAL_CONDITION_GTE {
        return Err(Status::INVALID_ARGUMENT);
    }
    add(Handler {
        on: Some((signal, condition, value)),
        call: Call::Handler(handler, data as usize),
    })
}

pub unsafe fn hsa_amd_async_function(
    callback: unsafe extern "C" fn(*mut c_void),
    data: *mut c_void,
) -> Outcome {
    add(Handler {
        on: None,
        call: Call::Function(callback, data as usize),
    })
}
