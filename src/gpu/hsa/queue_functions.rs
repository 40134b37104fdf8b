//! Functions of newer ROCr that create queues without `hsa_queue_create`: `hsa_amd_queue_create`, by which HIP creates
//! its queues from ROCm 10 on, and `hsa_amd_counted_queue_acquire` with its `_release`. They are at the end of ROCr's
//! `AmdExtTable`, and releases and development branches do not agree on their slots. So the slot is found by a call: for
//! a moment the slots that are not known hold probes, and the exported function, which goes through the table, calls one
//! of them.

use crate::sys::loader;
use hsa_abi::{AmdExtPrefix, Status, function};
use std::cell::Cell;
use std::ffi::{CStr, c_void};

/// Where the functions are in an `AmdExtTable`, if they are there: the slot's number, counted from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slots {
    pub create: Option<usize>,
    pub acquire: Option<usize>,
    pub release: Option<usize>,
}

/// What a table has in the slots. A slot that is not known has nothing.
pub struct Saved {
    pub create: Option<function::hsa_amd_queue_create>,
    pub acquire: Option<function::hsa_amd_counted_queue_acquire>,
    pub release: Option<function::hsa_queue_destroy>,
}

/// What goes into the slots that are known.
pub struct Hooks {
    pub create: function::hsa_amd_queue_create,
    pub acquire: function::hsa_amd_counted_queue_acquire,
    pub release: function::hsa_queue_destroy,
}

impl Slots {
    /// The functions in these slots.
    ///
    /// # Safety
    /// As [`functions`]; the slots were found in ROCr's table.
    pub unsafe fn saved(self, table: *mut AmdExtPrefix) -> Saved {
        use std::mem::transmute;
        // SAFETY: the caller's promise.
        let functions = unsafe { functions(table) };
        let at = |slot: Option<usize>| functions.get(slot?).copied();
        // SAFETY: functions of these types, by the names that lead to their slots.
        unsafe {
            Saved {
                create: at(self.create)
                    .map(|f| transmute::<Function, function::hsa_amd_queue_create>(f)),
                acquire: at(self.acquire)
                    .map(|f| transmute::<Function, function::hsa_amd_counted_queue_acquire>(f)),
                release: at(self.release)
                    .map(|f| transmute::<Function, function::hsa_queue_destroy>(f)),
            }
        }
    }

    /// Puts the hooks into these slots.
    ///
    /// # Safety
    /// As [`Slots::saved`].
    pub unsafe fn replace(self, table: *mut AmdExtPrefix, hooks: Hooks) {
        // SAFETY: the caller's promise.
        let functions = unsafe { functions(table) };
        let hooks = [
            (self.create, hooks.create as Function),
            (self.acquire, hooks.acquire as Function),
            (self.release, hooks.release as Function),
        ];
        for (slot, hook) in hooks {
            if let Some(place) = slot.and_then(|slot| functions.get_mut(slot)) {
                *place = hook;
            }
        }
    }
}

/// What stays in a slot that is replaced: a function's address.
pub type Function = *const c_void;

/// The slots of ROCr 7.2.4's table, which are all known and create no queues in these ways.
const FIRST: usize = hsa_abi::AMD_EXT_FUNCTIONS_7_2;
/// Slots that are probed, at most.
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

/// The functions of a table, from slot 0 on.
///
/// # Safety
/// `table` is ROCr's, as `OnLoad` gets it, and nobody else uses it while it is borrowed.
unsafe fn functions<'a>(table: *mut AmdExtPrefix) -> &'a mut [Function] {
    // SAFETY: the caller's promise; the version has the table's size, and the slots are behind it.
    unsafe {
        let version = &raw mut (*table).version;
        let bytes = ((*version).minor as usize).saturating_sub(size_of_val(&*version));
        std::slice::from_raw_parts_mut(version.add(1).cast(), bytes / size_of::<Function>())
    }
}

/// Finds the functions. Nothing is launched yet: HSA is being initialized.
///
/// # Safety
/// As [`functions`]; `rocr` is a function of the library that the table is of.
pub unsafe fn find(table: *mut AmdExtPrefix, rocr: *const c_void) -> Slots {
    // SAFETY: the caller's promise.
    let functions = unsafe { functions(table) };
    let end = functions.len().min(FIRST + PROBES);
    if end <= FIRST {
        return Slots::default();
    }
    let mut find = |name: &CStr| {
        let exported = loader::exported_by_file_of(rocr, name)?;
        let saved = functions[FIRST..end].to_vec();
        for (slot, probe) in functions[FIRST..end].iter_mut().zip(ALL) {
            *slot = probe as Function;
        }
        PROBED.set(None);
        // SAFETY: a function of ROCr's with up to seven arguments that are registers, or one word on the stack. All of
        // them are null, so that it fails at its first check where it does not go through the table.
        unsafe {
            type Seven = unsafe extern "C" fn(u64, u64, u64, u64, u64, u64, u64) -> u32;
            std::mem::transmute::<*mut c_void, Seven>(exported)(0, 0, 0, 0, 0, 0, 0);
        }
        functions[FIRST..end].copy_from_slice(&saved);
        PROBED.get().map(|n| FIRST + n)
    };
    Slots {
        create: find(c"hsa_amd_queue_create"),
        acquire: find(c"hsa_amd_counted_queue_acquire"),
        release: find(c"hsa_amd_counted_queue_release"),
    }
}
