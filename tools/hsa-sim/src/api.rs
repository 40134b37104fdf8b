//! The functions that the library exports, and the API tables that they call through.
//!
//! As in ROCr, what the library exports calls through the tables, so what a tool puts into a table is what every
//! caller gets; and the tables hold functions that first ask the fault plan ([`crate::plan`]) and then do the work. A
//! function whose type [`hsa_abi`] does not declare is not simulated: it is not exported, and a call through the table
//! prints a message and fails.

use crate::plan;
use hsa_abi::*;
use std::cell::UnsafeCell;
use std::ffi::{c_char, c_int, c_void};

/// The simulated functions, by their names.
mod simulated {
    pub use crate::agent::*;
    pub use crate::copy::*;
    pub use crate::counted::*;
    pub use crate::executable::*;
    pub use crate::intercept::*;
    pub use crate::memory::*;
    pub use crate::profiling::*;
    pub use crate::queue::*;
    pub use crate::queue_create::*;
    pub use crate::runtime::*;
    pub use crate::signal::*;
    pub use crate::system::*;
}

macro_rules! slot {
    ($name:ident) => {
        Some(entry::$name)
    };
    ($name:ident, $ret:ty) => {
        entry::$name
    };
}

macro_rules! entry {
    ($name:ident) => {
        pub unsafe extern "C" fn $name() -> Status {
            eprintln!("hsa-sim: {} is not simulated", stringify!($name));
            Status::NOT_SUPPORTED
        }
    };
    ($name:ident, $($arg:ident: $ty:ty),* => $ret:ty) => {
        pub unsafe extern "C" fn $name($($arg: $ty),*) -> $ret {
            plan::call(stringify!($name), || {
                // SAFETY: the caller's promise is that of HSA's specification for this function.
                unsafe { simulated::$name($($arg),*) }
            })
        }
    };
}

macro_rules! export {
    ($table:ident, $name:ident) => {};
    ($table:ident, $name:ident, $($arg:ident: $ty:ty),* => $ret:ty) => {
        /// The function of HSA's of this name.
        ///
        /// # Safety
        /// As HSA's specification says.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($arg: $ty),*) -> $ret {
            // SAFETY: the table's function has this signature, and the caller's promise is passed on.
            unsafe { ((*TABLES.get()).$table.$name)($($arg),*) }
        }
    };
}

macro_rules! define {
    ($(
        $table:ident: $type:ident v($major:literal, $step:literal)
        $(prefix $prefix:ident { $($p:ident $(($($p_arg:ident: $p_ty:ty),*) -> $p_ret:ty)?;)* })?
        rest { $($r:ident $(($($r_arg:ident: $r_ty:ty),*) -> $r_ret:ty)?;)* }
    )*) => {
        /// The tables, in the order of `HsaApiTableContainer`.
        #[repr(C)]
        pub struct Tables {
            $(pub $table: $type,)*
        }

        impl Tables {
            /// The tables before a tool changes them.
            const NEW: Tables = Tables {
                $($table: $type {
                    version: TableVersion {
                        major: $type::MAJOR,
                        minor: size_of::<$type>() as u32,
                        step: $type::STEP,
                        reserved: 0,
                    },
                    $($($p: slot!($p $(, $p_ret)?),)*)?
                    $($r: slot!($r $(, $r_ret)?),)*
                },)*
            };
        }

        mod entry {
            use super::*;
            $(
                $($(entry! { $p $(, $($p_arg: $p_ty),* => $p_ret)? })*)?
                $(entry! { $r $(, $($r_arg: $r_ty),* => $r_ret)? })*
            )*
        }

        mod export {
            use super::*;
            $(define! { @export $table $($($p $(($($p_arg: $p_ty),*) -> $p_ret)?;)*)? $($r $(($($r_arg: $r_ty),*) -> $r_ret)?;)* })*
        }
        pub use export::*;
    };
    (@export $table:ident $($name:ident $(($($arg:ident: $ty:ty),*) -> $ret:ty)?;)*) => {
        $(export! { $table, $name $(, $($arg: $ty),* => $ret)? })*
    };
}

api_tables! { define }

/// The version of ROCr 7.2.4's `AmdExtTable`, whose functions are the first of the newest one.
pub fn amd_ext_7_2() -> TableVersion {
    let size = size_of::<TableVersion>() + AMD_EXT_FUNCTIONS_7_2 * size_of::<usize>();
    TableVersion {
        minor: size as u32,
        step: AMD_EXT_STEP_7_2,
        ..Tables::NEW.amd_ext.version
    }
}

/// The older names, which ROCr still exports, of functions in the table.
macro_rules! older {
    ($($old:ident = $new:ident($($arg:ident: $ty:ty),*) -> $ret:ty;)*) => {$(
        /// The older name of the function that it calls.
        ///
        /// # Safety
        /// As HSA's specification says.
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

/// Tables that tools write to.
pub struct Shared(UnsafeCell<Tables>);

// SAFETY: tools write while they are loaded, inside hsa_init, as ROCr's tables ask of them; a reader of a pointer that
// is being replaced gets the old or the new one.
unsafe impl Sync for Shared {}

impl Shared {
    /// Where the tables lie.
    pub fn get(&self) -> *mut Tables {
        self.0.get()
    }

    /// Puts the runtime's own functions back.
    pub fn reset(&self) {
        // SAFETY: called when the last tool has been told to go, under the runtime's lock.
        unsafe { *self.get() = Tables::NEW };
    }
}

/// The process's tables.
pub static TABLES: Shared = Shared(UnsafeCell::new(Tables::NEW));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_older_table_ends_where_that_of_rocr_7_2_does() {
        let older = amd_ext_7_2();
        assert_eq!((older.major, older.minor, older.step), (2, 624, 8));
    }
}
