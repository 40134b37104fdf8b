//! The functions that the library exports, and the API tables that they call through.
//!
//! As in ROCr, exported functions call through the tables, so that all callers get the functions that tools have installed.
//! The tables' own functions apply the fault plan ([`crate::faults`]). A function whose type [`hsa_abi`] does not declare is
//! not simulated: it is not exported, and a call through the table prints a message and fails.

use crate::hsa::calls::call;
use crate::results::IntoReturned;
use crate::settings::tools::ToolSettings;
use crate::sync::locked;
use hsa_abi::*;
use std::cell::UnsafeCell;
use std::ffi::{c_char, c_int, c_void};
use std::sync::Mutex;

/// The simulated functions, by their names.
mod simulated {
    pub use crate::hsa::agent::*;
    pub use crate::hsa::allocation::*;
    pub use crate::hsa::code_object::*;
    pub use crate::hsa::copy::*;
    pub use crate::hsa::counted_queue::*;
    pub use crate::hsa::executable::*;
    pub use crate::hsa::intercept_queue::*;
    pub use crate::hsa::ipc::*;
    pub use crate::hsa::isa::*;
    pub use crate::hsa::memory_lock::*;
    pub use crate::hsa::pointer::*;
    pub use crate::hsa::pool::*;
    pub use crate::hsa::profiling::*;
    pub use crate::hsa::queue::*;
    pub use crate::hsa::queue_create::*;
    pub use crate::hsa::reader::*;
    pub use crate::hsa::signal::*;
    pub use crate::hsa::signal_handler::*;
    pub use crate::hsa::symbol::*;
    pub use crate::hsa::system::*;
    pub use crate::hsa::unsupported::*;

    use super::{TABLES, shared_table};
    use crate::hsa::lifecycle;
    use crate::tools;
    use hsa_abi::Status;

    pub unsafe fn hsa_init() -> Status {
        lifecycle::init(|settings| tools::load(settings, || shared_table(settings)))
    }

    pub unsafe fn hsa_shut_down() -> Status {
        lifecycle::shut_down(|| {
            tools::unload(|| TABLES.reset());
            TABLES.reset();
        })
    }
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
            call(stringify!($name), || {
                // SAFETY: the caller promises what HSA's specification requires for this function.
                unsafe { simulated::$name($($arg),*) }.into_returned()
            })
        }
    };
}

macro_rules! export {
    ($table:ident, $name:ident) => {};
    ($table:ident, $name:ident, $($arg:ident: $ty:ty),* => $ret:ty) => {
        /// HSA's function of this name.
        ///
        /// # Safety
        /// As specified by HSA.
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

/// The version of ROCr 7.2.4's `AmdExtTable`, which is a prefix of the newest one.
pub fn amd_ext_7_2() -> TableVersion {
    let size = size_of::<TableVersion>() + AMD_EXT_FUNCTIONS_7_2 * size_of::<usize>();
    TableVersion {
        minor: size as u32,
        step: AMD_EXT_STEP_7_2,
        ..Tables::NEW.amd_ext.version
    }
}

fn table() -> ApiTable {
    let tables = TABLES.get();
    // SAFETY: addresses of fields of a static; nothing is read.
    unsafe {
        ApiTable {
            version: TableVersion {
                major: API_TABLE_MAJOR_VERSION,
                minor: size_of::<ApiTable>() as u32,
                step: API_TABLE_STEP_VERSION,
                reserved: 0,
            },
            core: &raw mut (*tables).core,
            amd_ext: &raw mut (*tables).amd_ext,
            finalizer_ext: &raw mut (*tables).finalizer_ext,
            image_ext: &raw mut (*tables).image_ext,
            tools: &raw mut (*tables).tools,
            pc_sampling_ext: &raw mut (*tables).pc_sampling_ext,
        }
    }
}

/// The table for tools. They may keep the pointer.
fn shared_table(settings: &ToolSettings) -> *mut ApiTable {
    static TABLE: Mutex<Option<usize>> = Mutex::new(None);
    let mut shared = locked(&TABLE);
    let table = *shared.get_or_insert_with(|| Box::into_raw(Box::new(table())) as usize);
    let table = table as *mut ApiTable;
    // SAFETY: never freed, and only changed here while no tool is loaded.
    unsafe {
        (*table).version.major = settings.table_major;
        if settings.older_table {
            (*TABLES.get()).amd_ext.version = amd_ext_7_2();
        }
    }
    table
}

/// Tables that tools write to.
pub struct Shared(UnsafeCell<Tables>);

// SAFETY: tools write in their OnLoad, inside hsa_init, as ROCr requires. A concurrent reader of a pointer gets the old or
// the new one.
unsafe impl Sync for Shared {}

impl Shared {
    /// The address of the tables.
    pub fn get(&self) -> *mut Tables {
        self.0.get()
    }

    /// Restores the runtime's own functions.
    pub fn reset(&self) {
        // SAFETY: called at shutdown, when `OnUnload` of all tools has returned.
        unsafe { *self.get() = Tables::NEW };
    }
}

/// The process's tables.
pub static TABLES: Shared = Shared(UnsafeCell::new(Tables::NEW));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_older_table_has_the_version_of_rocr_7_2() {
        let older = amd_ext_7_2();
        assert_eq!((older.major, older.minor, older.step), (2, 624, 8));
    }
}
