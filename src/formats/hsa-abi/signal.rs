//! Signals and the times in them.

use crate::queue::AmdQueue;
use std::ffi::c_void;
use std::sync::atomic::{AtomicI64, AtomicU64};

/// `hsa_signal_value_t` (hsa.h) of the large machine model.
pub type SignalValue = i64;

constants! {
    "`hsa_signal_condition_t` (hsa.h)": u32 {
        HSA_SIGNAL_CONDITION_EQ = 0;
        HSA_SIGNAL_CONDITION_NE = 1;
        HSA_SIGNAL_CONDITION_LT = 2;
        HSA_SIGNAL_CONDITION_GTE = 3;
    }
    "`hsa_wait_state_t` (hsa.h)": u32 {
        HSA_WAIT_STATE_BLOCKED = 0;
    }
    "`hsa_amd_signal_attribute_t` (hsa_ext_amd.h)": u64 {
        /// The signal raises no interrupt, so that a waiting host has to poll.
        HSA_AMD_SIGNAL_AMD_GPU_ONLY = 1;
    }
    "`amd_signal_kind_t` (amd_hsa_signal.h)": i64 {
        AMD_SIGNAL_KIND_USER = 1;
        AMD_SIGNAL_KIND_DOORBELL = -1;
    }
}

/// `amd_signal_t` (amd_hsa_signal.h): a [`SignalHandle`](crate::SignalHandle) is the address of this struct.
#[repr(C, align(64))]
pub struct AmdSignal {
    /// An `amd_signal_kind_t`.
    pub kind: i64,
    /// The value of a user signal, the address of a doorbell's register.
    pub value: AtomicI64,
    /// The address to which the GPU writes `event_id` to raise an interrupt.
    pub event_mailbox_ptr: u64,
    /// The number of the interrupt's event.
    pub event_id: u32,
    /// Reserved.
    pub reserved1: u32,
    /// When the packet started, in ticks of the agent's clock.
    pub start_ts: AtomicU64,
    /// When the packet ended, in ticks of the agent's clock.
    pub end_ts: AtomicU64,
    /// The queue of a doorbell.
    pub queue_ptr: *mut AmdQueue,
    /// Reserved.
    pub reserved3: [u32; 2],
}

/// `hsa_amd_profiling_dispatch_time_t` (hsa_ext_amd.h), also `hsa_amd_profiling_async_copy_time_t`: in ticks of
/// the system's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct DispatchTime {
    /// When the dispatch or the copy started, in ticks.
    pub start: u64,
    /// When it ended, in ticks.
    pub end: u64,
}

/// `hsa_amd_signal_handler` (hsa_ext_amd.h): the signal's value, and the registered data. Returns whether it is to
/// be called again when the condition holds again.
pub type SignalHandler = unsafe extern "C" fn(SignalValue, *mut c_void) -> bool;
/// The callback of `hsa_amd_async_function` (hsa_ext_amd.h).
pub type AsyncFunction = unsafe extern "C" fn(*mut c_void);
