//! Functions under the older names that ROCr still exports.

use super::tables::*;
use hsa_abi::*;

/// Defines functions that call a function of the table under its newer name.
macro_rules! older {
    ($($old:ident = $new:ident($($arg:ident: $ty:ty),*) -> $ret:ty;)*) => {$(
        /// Calls the function by its newer name.
        ///
        /// # Safety
        /// As specified by HSA.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $old($($arg: $ty),*) -> $ret {
            // SAFETY: the caller's promise is passed on.
            unsafe { $new($($arg),*) }
        }
    )*};
}

older! {
    hsa_signal_load_acquire = hsa_signal_load_scacquire(signal: SignalHandle) -> SignalValue;
    hsa_signal_store_release = hsa_signal_store_screlease(signal: SignalHandle, value: SignalValue) -> ();
    hsa_signal_wait_acquire = hsa_signal_wait_scacquire(signal: SignalHandle, condition: u32, value: SignalValue, timeout: u64, hint: u32) -> SignalValue;
    hsa_signal_and_acquire = hsa_signal_and_scacquire(signal: SignalHandle, value: SignalValue) -> ();
    hsa_signal_and_release = hsa_signal_and_screlease(signal: SignalHandle, value: SignalValue) -> ();
    hsa_signal_and_acq_rel = hsa_signal_and_scacq_screl(signal: SignalHandle, value: SignalValue) -> ();
    hsa_signal_or_acquire = hsa_signal_or_scacquire(signal: SignalHandle, value: SignalValue) -> ();
    hsa_signal_or_release = hsa_signal_or_screlease(signal: SignalHandle, value: SignalValue) -> ();
    hsa_signal_or_acq_rel = hsa_signal_or_scacq_screl(signal: SignalHandle, value: SignalValue) -> ();
    hsa_signal_xor_acquire = hsa_signal_xor_scacquire(signal: SignalHandle, value: SignalValue) -> ();
    hsa_signal_xor_release = hsa_signal_xor_screlease(signal: SignalHandle, value: SignalValue) -> ();
    hsa_signal_xor_acq_rel = hsa_signal_xor_scacq_screl(signal: SignalHandle, value: SignalValue) -> ();
    hsa_signal_exchange_acquire = hsa_signal_exchange_scacquire(signal: SignalHandle, value: SignalValue) -> SignalValue;
    hsa_signal_exchange_release = hsa_signal_exchange_screlease(signal: SignalHandle, value: SignalValue) -> SignalValue;
    hsa_signal_exchange_acq_rel = hsa_signal_exchange_scacq_screl(signal: SignalHandle, value: SignalValue) -> SignalValue;
    hsa_signal_add_acquire = hsa_signal_add_scacquire(signal: SignalHandle, value: SignalValue) -> ();
    hsa_signal_add_release = hsa_signal_add_screlease(signal: SignalHandle, value: SignalValue) -> ();
    hsa_signal_add_acq_rel = hsa_signal_add_scacq_screl(signal: SignalHandle, value: SignalValue) -> ();
    hsa_signal_subtract_acquire = hsa_signal_subtract_scacquire(signal: SignalHandle, value: SignalValue) -> ();
    hsa_signal_subtract_release = hsa_signal_subtract_screlease(signal: SignalHandle, value: SignalValue) -> ();
    hsa_signal_subtract_acq_rel = hsa_signal_subtract_scacq_screl(signal: SignalHandle, value: SignalValue) -> ();
    hsa_signal_cas_acquire = hsa_signal_cas_scacquire(signal: SignalHandle, expected: SignalValue, value: SignalValue) -> SignalValue;
    hsa_signal_cas_release = hsa_signal_cas_screlease(signal: SignalHandle, expected: SignalValue, value: SignalValue) -> SignalValue;
    hsa_signal_cas_acq_rel = hsa_signal_cas_scacq_screl(signal: SignalHandle, expected: SignalValue, value: SignalValue) -> SignalValue;
    hsa_queue_load_read_index_acquire = hsa_queue_load_read_index_scacquire(queue: *const Queue) -> u64;
    hsa_queue_load_write_index_acquire = hsa_queue_load_write_index_scacquire(queue: *const Queue) -> u64;
    hsa_queue_store_write_index_release = hsa_queue_store_write_index_screlease(queue: *const Queue, value: u64) -> ();
    hsa_queue_store_read_index_release = hsa_queue_store_read_index_screlease(queue: *const Queue, value: u64) -> ();
    hsa_queue_cas_write_index_acquire = hsa_queue_cas_write_index_scacquire(queue: *const Queue, expected: u64, value: u64) -> u64;
    hsa_queue_cas_write_index_release = hsa_queue_cas_write_index_screlease(queue: *const Queue, expected: u64, value: u64) -> u64;
    hsa_queue_cas_write_index_acq_rel = hsa_queue_cas_write_index_scacq_screl(queue: *const Queue, expected: u64, value: u64) -> u64;
    hsa_queue_add_write_index_acquire = hsa_queue_add_write_index_scacquire(queue: *const Queue, value: u64) -> u64;
    hsa_queue_add_write_index_release = hsa_queue_add_write_index_screlease(queue: *const Queue, value: u64) -> u64;
    hsa_queue_add_write_index_acq_rel = hsa_queue_add_write_index_scacq_screl(queue: *const Queue, value: u64) -> u64;
}
