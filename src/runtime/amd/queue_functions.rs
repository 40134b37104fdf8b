//! Functions of newer versions of ROCr that create queues without `hsa_queue_create`: `hsa_amd_queue_create`, which HIP
//! uses since ROCm 10, and `hsa_amd_counted_queue_acquire` with `hsa_amd_counted_queue_release`.
//!
//! They are at the end of ROCr's `AmdExtTable`, but their slots differ between releases and development branches.
//! [`find`] detects the slots: it temporarily fills the unknown slots with probes and calls the exported function. That
//! function calls through the table, and so calls the probe in its slot.

use crate::sys::loader;
use hsa_abi::{AmdExtPrefix, Status, function};
use std::cell::Cell;
use std::ffi::{CStr, c_void};

/// The slots of the functions in an `AmdExtTable`, counted from 0. `None` if the table does not have the function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueFunctionSlots {
    pub create: Option<usize>,
    pub acquire: Option<usize>,
    pub release: Option<usize>,
}

/// The functions in these slots of a table, or hooks that replace them. `None` for an unknown slot.
pub struct QueueFunctions {
    pub create: Option<function::hsa_amd_queue_create>,
    pub acquire: Option<function::hsa_amd_counted_queue_acquire>,
    pub release: Option<function::hsa_queue_destroy>,
}

impl QueueFunctionSlots {
    /// The functions in these slots.
    ///
    /// # Safety
    /// As [`functions`]; the slots were found in ROCr's table.
    pub unsafe fn read(self, table: *mut AmdExtPrefix) -> QueueFunctions {
        use std::mem::transmute;
        // SAFETY: the caller's promise.
        let functions = unsafe { functions(table) };
        let at = |slot: Option<usize>| functions.get(slot?).copied();
        // SAFETY: each slot was found by the name of a function of this type.
        unsafe {
            QueueFunctions {
                create: at(self.create).map(|f| transmute(f)),
                acquire: at(self.acquire).map(|f| transmute(f)),
                release: at(self.release).map(|f| transmute(f)),
            }
        }
    }

    /// Replaces the functions in these slots with the hooks.
    ///
    /// # Safety
    /// As [`QueueFunctionSlots::read`].
    pub unsafe fn install(self, table: *mut AmdExtPrefix, hooks: QueueFunctions) {
        // SAFETY: the caller's promise.
        let functions = unsafe { functions(table) };
        let hooks = [
            (self.create, hooks.create.map(|hook| hook as Function)),
            (self.acquire, hooks.acquire.map(|hook| hook as Function)),
            (self.release, hooks.release.map(|hook| hook as Function)),
        ];
        for (slot, hook) in hooks {
            let function = slot.and_then(|slot| functions.get_mut(slot));
            if let (Some(function), Some(hook)) = (function, hook) {
                *function = hook;
            }
        }
    }
}

/// The address of a function in a table.
pub type Function = *const c_void;

/// The first slot that is probed. ROCr 7.2.4's table ends here: all of its functions are known.
const FIRST: usize = hsa_abi::AMD_EXT_FUNCTIONS_7_2;
/// The maximum number of slots that are probed.
const PROBES: usize = 64;

thread_local! {
    /// The probe that was called last.
    static PROBED: Cell<Option<usize>> = const { Cell::new(None) };
}

extern "C" fn probe<const N: usize>() -> Status {
    PROBED.set(Some(N));
    Status::ERROR
}

macro_rules! probes {
    ($($n:literal)*) => {
        const ALL: [extern "C" fn() -> Status; PROBES] = [$(probe::<$n>),*];
    };
}

probes! {
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
    32 33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63
}

/// All functions of a table, starting with slot 0.
///
/// # Safety
/// `table` is ROCr's, as passed to `OnLoad`, and not accessed otherwise, also not by ROCr, while the functions are borrowed.
pub unsafe fn functions<'a>(table: *mut AmdExtPrefix) -> &'a mut [Function] {
    // SAFETY: the caller's promise; the version contains the table's size, and the slots follow it.
    unsafe {
        let version = &raw mut (*table).version;
        let bytes = ((*version).minor as usize).saturating_sub(size_of_val(&*version));
        std::slice::from_raw_parts_mut(version.add(1).cast(), bytes / size_of::<Function>())
    }
}

/// Finds the slots. Must be called while HSA is being initialized, before anything is launched.
///
/// # Safety
/// As [`functions`]; `rocr` is a function of the library that owns the table.
pub unsafe fn find(table: *mut AmdExtPrefix, rocr: *const c_void) -> QueueFunctionSlots {
    // SAFETY: the caller's promise.
    unsafe {
        QueueFunctionSlots {
            create: find_slot(table, rocr, c"hsa_amd_queue_create"),
            acquire: find_slot(table, rocr, c"hsa_amd_counted_queue_acquire"),
            release: find_slot(table, rocr, c"hsa_amd_counted_queue_release"),
        }
    }
}

/// Finds the slot of one function, which has up to seven arguments, each passed in a register or as one word on the
/// stack, and which fails if all of them are null.
///
/// # Safety
/// As [`find`].
pub unsafe fn find_slot(
    table: *mut AmdExtPrefix,
    rocr: *const c_void,
    name: &CStr,
) -> Option<usize> {
    // SAFETY: the caller's promise.
    let functions = unsafe { functions(table) };
    let end = functions.len().min(FIRST + PROBES);
    if end <= FIRST {
        return None;
    }
    let exported = loader::exported_by_file_of(rocr, name)?;
    let saved = functions[FIRST..end].to_vec();
    for (slot, probe) in functions[FIRST..end].iter_mut().zip(ALL) {
        *slot = probe as Function;
    }
    PROBED.set(None);
    // SAFETY: the caller's promise. A function that does not call through the table fails its first argument check.
    unsafe {
        type Seven = unsafe extern "C" fn(u64, u64, u64, u64, u64, u64, u64) -> u32;
        std::mem::transmute::<*mut c_void, Seven>(exported)(0, 0, 0, 0, 0, 0, 0);
    }
    // Borrowed again, because ROCr has read the table.
    // SAFETY: the caller's promise.
    let functions = unsafe { self::functions(table) };
    functions[FIRST..end].copy_from_slice(&saved);
    PROBED.get().map(|n| FIRST + n)
}
