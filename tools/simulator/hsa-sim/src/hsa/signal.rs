//! Signals: creation, values, waits.

use crate::queues::block;
use crate::results::{Outcome, put};
use crate::signals::changes::{holds, notify, wait};
use crate::signals::exit;
use crate::signals::pool::{get, valid};
use crate::state::with;
use hsa_abi::*;
use std::sync::atomic::{Ordering::AcqRel, Ordering::Acquire, Ordering::Release};

pub unsafe fn hsa_signal_create(
    value: SignalValue,
    consumers: u32,
    agents: *const AgentHandle,
    signal: *mut SignalHandle,
) -> Outcome {
    // SAFETY: the caller's promise.
    unsafe { hsa_amd_signal_create(value, consumers, agents, 0, signal) }
}

pub unsafe fn hsa_amd_signal_create(
    value: SignalValue,
    consumers: u32,
    agents: *const AgentHandle,
    attributes: u64,
    signal: *mut SignalHandle,
) -> Outcome {
    if signal.is_null() || (consumers > 0 && agents.is_null()) {
        return Err(Status::INVALID_ARGUMENT);
    }
    // HSA_AMD_SIGNAL_AMD_GPU_ONLY has no effect. HSA_AMD_SIGNAL_IPC is not simulated.
    if attributes & !1 != 0 {
        return Err(Status::NOT_SUPPORTED);
    }
    let new = with(|state| state.create_signal(AMD_SIGNAL_KIND_USER, value))?;
    // SAFETY: the caller's promise.
    unsafe { put(signal, new) }
}

pub unsafe fn hsa_signal_destroy(signal: SignalHandle) -> Outcome {
    if signal == SignalHandle(0) {
        return Err(Status::INVALID_ARGUMENT);
    }
    with(|state| {
        // SAFETY: the caller's promise.
        match unsafe { get(signal) } {
            Some(found) if found.kind == AMD_SIGNAL_KIND_USER => {
                state.signals.destroy(signal);
                Ok(())
            }
            _ => Err(Status::INVALID_SIGNAL),
        }
    })
}

macro_rules! loads {
    ($($name:ident)*) => {$(
        pub unsafe fn $name(signal: SignalHandle) -> SignalValue {
            // SAFETY: the caller's promise.
            let value = unsafe { valid(signal) }.value.load(Acquire);
            exit::after_read(signal);
            value
        }
    )*};
}

loads! { hsa_signal_load_relaxed hsa_signal_load_scacquire }

/// Stores a value. A store to a doorbell rings its queue.
///
/// # Safety
/// As for [`get`].
unsafe fn store(signal: SignalHandle, value: SignalValue, notifies: bool) {
    // SAFETY: the caller's promise.
    let found = unsafe { valid(signal) };
    found.value.store(value, Release);
    if found.kind == AMD_SIGNAL_KIND_DOORBELL {
        // SAFETY: the queue of a doorbell lives as long as the doorbell.
        unsafe { block::ring(found.queue_ptr) };
    } else if notifies {
        notify();
    }
}

macro_rules! stores {
    ($($name:ident: $notifies:literal)*) => {$(
        pub unsafe fn $name(signal: SignalHandle, value: SignalValue) {
            // SAFETY: the caller's promise.
            unsafe { store(signal, value, $notifies) }
        }
    )*};
}

stores! {
    hsa_signal_store_relaxed: true
    hsa_signal_store_screlease: true
    hsa_signal_silent_store_relaxed: false
    hsa_signal_silent_store_screlease: false
}

macro_rules! updates {
    ($($fetch:ident: $($name:ident)*;)*) => {$($(
        /// The memory order is the strongest variant's.
        pub unsafe fn $name(signal: SignalHandle, value: SignalValue) {
            // SAFETY: the caller's promise.
            unsafe { valid(signal) }.value.$fetch(value, AcqRel);
            notify();
        }
    )*)*};
}

updates! {
    fetch_and: hsa_signal_and_relaxed hsa_signal_and_scacquire hsa_signal_and_screlease hsa_signal_and_scacq_screl;
    fetch_or: hsa_signal_or_relaxed hsa_signal_or_scacquire hsa_signal_or_screlease hsa_signal_or_scacq_screl;
    fetch_xor: hsa_signal_xor_relaxed hsa_signal_xor_scacquire hsa_signal_xor_screlease hsa_signal_xor_scacq_screl;
    fetch_add: hsa_signal_add_relaxed hsa_signal_add_scacquire hsa_signal_add_screlease hsa_signal_add_scacq_screl;
    fetch_sub: hsa_signal_subtract_relaxed hsa_signal_subtract_scacquire hsa_signal_subtract_screlease
        hsa_signal_subtract_scacq_screl;
}

macro_rules! exchanges {
    ($($name:ident)*) => {$(
        pub unsafe fn $name(signal: SignalHandle, value: SignalValue) -> SignalValue {
            // SAFETY: the caller's promise.
            let old = unsafe { valid(signal) }.value.swap(value, AcqRel);
            notify();
            old
        }
    )*};
}

exchanges! {
    hsa_signal_exchange_relaxed
    hsa_signal_exchange_scacquire
    hsa_signal_exchange_screlease
    hsa_signal_exchange_scacq_screl
}

macro_rules! compares {
    ($($name:ident)*) => {$(
        pub unsafe fn $name(
            signal: SignalHandle,
            expected: SignalValue,
            value: SignalValue,
        ) -> SignalValue {
            // SAFETY: the caller's promise.
            let of = &unsafe { valid(signal) }.value;
            let old = of.compare_exchange(expected, value, AcqRel, Acquire);
            notify();
            old.unwrap_or_else(|old| old)
        }
    )*};
}

compares! {
    hsa_signal_cas_relaxed
    hsa_signal_cas_scacquire
    hsa_signal_cas_screlease
    hsa_signal_cas_scacq_screl
}

macro_rules! waits {
    ($($name:ident)*) => {$(
        pub unsafe fn $name(
            signal: SignalHandle,
            condition: u32,
            compare: SignalValue,
            timeout: u64,
            _hint: u32,
        ) -> SignalValue {
            // SAFETY: the caller's promise.
            let of = &unsafe { valid(signal) }.value;
            let met = wait(timeout, || {
                let value = of.load(Acquire);
                holds(condition, value, compare).then_some(value)
            });
            let value = met.unwrap_or_else(|| of.load(Acquire));
            exit::after_read(signal);
            value
        }
    )*};
}

waits! { hsa_signal_wait_relaxed hsa_signal_wait_scacquire }

/// The signals, conditions and values of a wait for several signals.
///
/// # Safety
/// The three arrays have `count` elements.
unsafe fn awaited<'a>(
    count: u32,
    signals: *const SignalHandle,
    conditions: *const u32,
    values: *const SignalValue,
) -> Vec<(Option<&'a AmdSignal>, u32, SignalValue)> {
    (0..count as usize)
        .map(|n| {
            // SAFETY: the caller's promise.
            unsafe { (get(*signals.add(n)), *conditions.add(n), *values.add(n)) }
        })
        .collect()
}

pub unsafe fn hsa_amd_signal_wait_any(
    count: u32,
    signals: *const SignalHandle,
    conditions: *const u32,
    values: *const SignalValue,
    timeout: u64,
    _hint: u32,
    satisfying: *mut SignalValue,
) -> u32 {
    // SAFETY: the caller's promise.
    let all = unsafe { awaited(count, signals, conditions, values) };
    let met = wait(timeout, || {
        all.iter()
            .enumerate()
            .find_map(|(n, (signal, condition, compare))| {
                let value = signal.as_ref()?.value.load(Acquire);
                holds(*condition, value, *compare).then_some((n as u32, value))
            })
    });
    let Some((n, value)) = met else {
        return u32::MAX;
    };
    if !satisfying.is_null() {
        // SAFETY: the caller's promise.
        unsafe { satisfying.write(value) };
    }
    n
}

pub unsafe fn hsa_amd_signal_wait_all(
    count: u32,
    signals: *const SignalHandle,
    conditions: *const u32,
    values: *const SignalValue,
    timeout: u64,
    _hint: u32,
    satisfying: *mut SignalValue,
) -> u32 {
    // SAFETY: the caller's promise.
    let all = unsafe { awaited(count, signals, conditions, values) };
    let met = wait(timeout, || {
        let values = all.iter().map(|(signal, condition, compare)| {
            let value = signal.map_or(0, |signal| signal.value.load(Acquire));
            (signal.is_none() || holds(*condition, value, *compare)).then_some(value)
        });
        values.collect::<Option<Vec<_>>>()
    });
    let Some(values) = met else {
        return u32::MAX;
    };
    if !satisfying.is_null() {
        // SAFETY: the caller's promise: memory for as many values as there are signals.
        unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), satisfying, values.len()) };
    }
    0
}

pub unsafe fn hsa_amd_signal_value_pointer(
    signal: SignalHandle,
    value: *mut *mut SignalValue,
) -> Outcome {
    with(|_| Ok(()))?;
    // SAFETY: the caller's promise. A pointer has the size of usize.
    unsafe {
        let found = get(signal).ok_or(Status::INVALID_ARGUMENT)?;
        put(value.cast(), found.value.as_ptr() as usize)
    }
}
