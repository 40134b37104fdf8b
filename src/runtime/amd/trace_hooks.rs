//! The hooks that a trace installs in ROCr's API tables: they create the program's queues as intercept queues, and
//! report reserved slots, changed and destroyed signals, and reads of dispatch times.

use super::doorbell::{self, StoreSignal};
use super::queue_functions::QueueFunctions;
use super::tables::saved;
use super::{intercept, tool_hooks};
use crate::gpu::observers::{self, observes_launches};
use hsa_abi::*;

/// Installs the hooks.
///
/// # Safety
/// As for [`super::tables::save`], which must have been called before with these tables.
pub unsafe fn install(core: *mut CoreApiPrefix, amd: *mut AmdExtPrefix) {
    let hooks = QueueFunctions {
        create: Some(intercept::amd_queue_create),
        acquire: Some(intercept::counted_queue_acquire),
        release: Some(intercept::counted_queue_release),
    };
    // SAFETY: the slots were found in this table.
    unsafe { tool_hooks::queue_function_slots().install(amd, hooks) };
    // SAFETY: ROCr's tables, which nobody else accesses here.
    let (core, amd) = unsafe { (&mut *core, &mut *amd) };
    core.hsa_queue_create = intercept::queue_create;
    core.hsa_queue_destroy = intercept::queue_destroy;
    core.hsa_signal_destroy = signal_destroy;
    core.hsa_queue_add_write_index_scacq_screl = add_write_index_scacq_screl;
    core.hsa_queue_add_write_index_scacquire = add_write_index_scacquire;
    core.hsa_queue_add_write_index_relaxed = add_write_index_relaxed;
    core.hsa_queue_add_write_index_screlease = add_write_index_screlease;
    signal_stores::install(core);
    signal_updates::install(core);
    signal_exchanges::install(core);
    signal_comparisons::install(core);
    amd.hsa_amd_queue_intercept_create = intercept::intercept_create;
    amd.hsa_amd_profiling_set_profiler_enabled = set_profiler_enabled;
    amd.hsa_amd_profiling_get_dispatch_time = get_dispatch_time;
}

/// Hooks of the functions that reserve slots for packets. The calling thread writes the packets.
macro_rules! add_write_index {
    ($($name:ident = $function:ident,)*) => {$(
        unsafe extern "C" fn $name(queue: *const Queue, count: u64) -> u64 {
            let Some(saved) = saved() else {
                return 0;
            };
            // SAFETY: the program's arguments, passed to the function that it called.
            let first = unsafe { (saved.core.$function)(queue, count) };
            if observes_launches() && let Some(trace) = observers::trace() {
                // SAFETY: the program's queue.
                unsafe { intercept::slots_reserved(queue) };
                trace.slots_reserved(queue as usize, first, count);
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
    if let Some(trace) = observers::trace() {
        trace.signal_destroying(signal.0);
    }
    // SAFETY: the program's argument.
    unsafe { (saved.core.hsa_signal_destroy)(signal) }
}

/// Defines a module of hooks for functions that change a signal's value, which have the same parameters.
macro_rules! change_signal {
    (mod $module:ident: fn $parameters:tt -> $result:ty = $hook:ident; $($name:ident)*) => {
        mod $module {
            use super::*;

            $(change_signal! { $name $parameters $result, $hook })*

            /// Installs the hooks.
            pub fn install(core: &mut CoreApiPrefix) {
                $(core.$name = $name;)*
            }
        }
    };
    ($name:ident ($($parameter:ident: $type:ty),*) $result:ty, $hook:ident) => {
        unsafe extern "C" fn $name($($parameter: $type),*) -> $result {
            match saved() {
                // SAFETY: the program's arguments, passed to the function that it called.
                Some(saved) => unsafe { $hook($($parameter,)* saved.core.$name) },
                None => Default::default(),
            }
        }
    };
}

change_signal! {
    mod signal_stores: fn(signal: SignalHandle, value: SignalValue) -> () = store;
    hsa_signal_store_relaxed
    hsa_signal_store_screlease
    hsa_signal_silent_store_relaxed
    hsa_signal_silent_store_screlease
}

change_signal! {
    mod signal_updates: fn(signal: SignalHandle, value: SignalValue) -> () = update;
    hsa_signal_and_relaxed
    hsa_signal_and_scacquire
    hsa_signal_and_screlease
    hsa_signal_and_scacq_screl
    hsa_signal_or_relaxed
    hsa_signal_or_scacquire
    hsa_signal_or_screlease
    hsa_signal_or_scacq_screl
    hsa_signal_xor_relaxed
    hsa_signal_xor_scacquire
    hsa_signal_xor_screlease
    hsa_signal_xor_scacq_screl
    hsa_signal_add_relaxed
    hsa_signal_add_scacquire
    hsa_signal_add_screlease
    hsa_signal_add_scacq_screl
    hsa_signal_subtract_relaxed
    hsa_signal_subtract_scacquire
    hsa_signal_subtract_screlease
    hsa_signal_subtract_scacq_screl
}

change_signal! {
    mod signal_exchanges: fn(signal: SignalHandle, value: SignalValue) -> SignalValue = update;
    hsa_signal_exchange_relaxed
    hsa_signal_exchange_scacquire
    hsa_signal_exchange_screlease
    hsa_signal_exchange_scacq_screl
}

change_signal! {
    mod signal_comparisons:
    fn(signal: SignalHandle, expected: SignalValue, value: SignalValue) -> SignalValue = compare;
    hsa_signal_cas_relaxed
    hsa_signal_cas_scacquire
    hsa_signal_cas_screlease
    hsa_signal_cas_scacq_screl
}

/// Stores to a signal, which may be a doorbell.
///
/// # Safety
/// As for `function`, ROCr's function that the program called.
unsafe fn store(signal: SignalHandle, value: SignalValue, function: StoreSignal) {
    // SAFETY: the caller's promise.
    unsafe {
        if !doorbell::store(signal, value, function) {
            update(signal, value, function);
        }
    }
}

/// Changes the value of a signal that is not a doorbell.
///
/// # Safety
/// As for [`store`].
unsafe fn update<R>(
    signal: SignalHandle,
    value: SignalValue,
    function: unsafe extern "C" fn(SignalHandle, SignalValue) -> R,
) -> R {
    if let Some(trace) = observers::trace() {
        trace.signal_changing(signal.0);
    }
    // SAFETY: the caller's promise.
    unsafe { function(signal, value) }
}

/// Changes the value of a signal if it is `expected`.
///
/// # Safety
/// As for [`store`].
unsafe fn compare(
    signal: SignalHandle,
    expected: SignalValue,
    value: SignalValue,
    function: unsafe extern "C" fn(SignalHandle, SignalValue, SignalValue) -> SignalValue,
) -> SignalValue {
    let trace = observers::trace();
    if let Some(trace) = trace {
        trace.signal_comparing(signal.0);
    }
    // SAFETY: the caller's promise.
    let old = unsafe { function(signal, expected, value) };
    if old == expected
        && let Some(trace) = trace
    {
        trace.signal_changed(signal.0, old);
    }
    old
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

/// If devprof replaced the program's completion signal in a packet, a barrier packet completes it, so the signal does
/// not contain the kernel's times.
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
    if status == Status::SUCCESS
        && let Some((start, end)) =
            observers::trace().and_then(|trace| trace.dispatch_time_read(signal.0))
    {
        // SAFETY: the call succeeded, so `time` may be written.
        unsafe { time.write(DispatchTime { start, end }) };
    }
    status
}
