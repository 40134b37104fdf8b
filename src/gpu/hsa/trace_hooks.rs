//! The hooks that a trace installs in ROCr's API tables: they create the program's queues as intercept queues, and
//! report reserved slots, destroyed signals and reads of dispatch times.

use super::queue_functions::QueueHooks;
use super::saved_api_table::saved;
use super::tables::tables;
use super::{doorbell, intercept, tool_hooks};
use crate::gpu::events::{Event, observes_launches, report};
use hsa_abi::{AgentHandle, ApiPrefix, DispatchTime, Queue, SignalHandle, SignalValue, Status};

/// Installs the hooks.
///
/// # Safety
/// As for [`super::saved_api_table::save`], which must have been called before.
pub unsafe fn install(table: *mut ApiPrefix) {
    // SAFETY: the caller's promise.
    let Some((core, amd)) = (unsafe { tables(table) }) else {
        return;
    };
    core.hsa_queue_create = intercept::queue_create;
    core.hsa_queue_destroy = intercept::queue_destroy;
    core.hsa_signal_destroy = signal_destroy;
    core.hsa_queue_add_write_index_scacq_screl = add_write_index_scacq_screl;
    core.hsa_queue_add_write_index_scacquire = add_write_index_scacquire;
    core.hsa_queue_add_write_index_relaxed = add_write_index_relaxed;
    core.hsa_queue_add_write_index_screlease = add_write_index_screlease;
    core.hsa_signal_store_relaxed = signal_store_relaxed;
    core.hsa_signal_store_screlease = signal_store_screlease;
    amd.hsa_amd_queue_intercept_create = intercept::intercept_create;
    amd.hsa_amd_profiling_set_profiler_enabled = set_profiler_enabled;
    amd.hsa_amd_profiling_get_dispatch_time = get_dispatch_time;
    let hooks = QueueHooks {
        create: intercept::amd_queue_create,
        acquire: intercept::counted_queue_acquire,
        release: intercept::counted_queue_release,
    };
    // SAFETY: the slots were found in this table.
    unsafe { tool_hooks::queue_function_slots().install(amd, hooks) };
}

/// Hooks of the functions that reserve slots for packets. The calling thread is the one that writes the packets.
macro_rules! add_write_index {
    ($($name:ident = $function:ident,)*) => {$(
        unsafe extern "C" fn $name(queue: *const Queue, count: u64) -> u64 {
            let Some(saved) = saved() else {
                return 0;
            };
            // SAFETY: the program's arguments, passed to the function that it called.
            let first = unsafe { (saved.core.$function)(queue, count) };
            if observes_launches() {
                report(Event::SlotsReserved { queue: queue as usize, first, count });
            }
            first
        }
    )*};
}

add_write_index! {
    add_write_index_scacq_screl = hsa_queue_add_write_index_scacq_screl,
    add_write_index_scacquire = hsa_queue_add_write_index_scacquire,
    add_write_index_relaxed = hsa_queue_add_write_index_relaxed,
    add_write_index_screlease = hsa_queue_add_write_index_screlease,
}

unsafe extern "C" fn signal_destroy(signal: SignalHandle) -> Status {
    let Some(saved) = saved() else {
        return Status::ERROR;
    };
    report(Event::SignalDestroying { signal: signal.0 });
    // SAFETY: the program's argument.
    unsafe { (saved.core.hsa_signal_destroy)(signal) }
}

unsafe extern "C" fn signal_store_relaxed(signal: SignalHandle, value: SignalValue) {
    if let Some(saved) = saved() {
        // SAFETY: the program's arguments, passed to the function that it called.
        unsafe { doorbell::store(signal, value, saved.core.hsa_signal_store_relaxed) };
    }
}

unsafe extern "C" fn signal_store_screlease(signal: SignalHandle, value: SignalValue) {
    if let Some(saved) = saved() {
        // SAFETY: the program's arguments, passed to the function that it called.
        unsafe { doorbell::store(signal, value, saved.core.hsa_signal_store_screlease) };
    }
}

/// Keeps profiling enabled for traced queues.
unsafe extern "C" fn set_profiler_enabled(queue: *mut Queue, enable: i32) -> Status {
    let Some(saved) = saved() else {
        return Status::ERROR;
    };
    let enable = if intercept::is_intercepted(queue) {
        1
    } else {
        enable
    };
    // SAFETY: the program's arguments, except for `enable`.
    unsafe { (saved.amd.hsa_amd_profiling_set_profiler_enabled)(queue, enable) }
}

/// In a traced queue, a barrier packet completes the program's completion signal, so the signal does not contain the
/// kernel's times.
unsafe extern "C" fn get_dispatch_time(
    agent: AgentHandle,
    signal: SignalHandle,
    time: *mut DispatchTime,
) -> Status {
    let Some(saved) = saved() else {
        return Status::ERROR;
    };
    // SAFETY: the program's arguments.
    let status = unsafe { (saved.amd.hsa_amd_profiling_get_dispatch_time)(agent, signal, time) };
    let mut kernel = None;
    if status == Status::SUCCESS {
        report(Event::DispatchTimeRead {
            signal: signal.0,
            time: &mut kernel,
        });
    }
    if let Some((start, end)) = kernel {
        // SAFETY: the call succeeded, so `time` may be written.
        unsafe { time.write(DispatchTime { start, end }) };
    }
    status
}
