//! Functions of the driver that the shared library wraps, to observe without CUPTI which code the program loads.
//!
//! A program gets the driver's functions from the dynamic linker, from `dlsym`, or from `cuGetProcAddress`; the CUDA runtime
//! uses the latter two. It does so before the driver is initialized, when it is not known whether CUPTI is used. So the
//! wrappers are always handed out. With CUPTI, the first one that succeeds, usually `cuInit`, makes devprof subscribe, and
//! the others only call the driver's function. No function that launches work is wrapped.
//!
//! The shared library exports the wrappers under the driver's names, for programs that are linked with the driver. If the
//! driver is not loaded, `dlsym` does not find them: see [`super::dlsym`].
//!
//! All versions of a function have the same first arguments. A wrapper passes as many as the longest version has: those that
//! a version does not have are in registers, which it ignores.

use super::replaced::P;
use crate::nvidia::wrapped;
use crate::support::panic_guard::{Cost, guarded};
use crate::sys::loader::c_name;
use cuda_abi::cupti::*;
use cuda_abi::driver::*;
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

/// How many functions of the driver the wrappers of one family can call: one for each version, and for each stream default.
const FOUND: usize = 4;
/// The exported functions, one for each name, have the slots after these.
const SLOTS: usize = FOUND + 4;

/// The address of a function.
#[derive(Clone, Copy)]
struct Address(*const ());

// SAFETY: code does not change.
unsafe impl Sync for Address {}

/// The versions of a function.
pub struct Family {
    /// The name for `cuGetProcAddress`.
    name: &'static CStr,
    /// The driver's function in each slot; null: not known yet.
    real: [AtomicPtr<c_void>; SLOTS],
    /// The wrappers of the first slots.
    wrappers: [Address; FOUND],
    /// The names and wrappers of the others.
    exported: &'static [(&'static CStr, Address)],
}

/// The function with this name, with or without its version. Allocates nothing.
pub fn find(name: &CStr) -> Option<&'static Family> {
    let is_name = |family: &&&'static Family| {
        let mut exported = family.exported.iter();
        family.name == name || exported.any(|(exported, _)| *exported == name)
    };
    FAMILIES.iter().find(is_name).copied()
}

impl Family {
    /// Whether a function is exported by devprof.
    pub fn is_exported(&self, function: P) -> bool {
        let mut exported = self.exported.iter();
        exported.any(|(_, wrapper)| wrapper.0 == function.cast_const().cast())
    }

    /// The wrapper that calls `found`, a function of the driver. If there are more of them than slots, `found`.
    pub fn wrapper(&self, found: P) -> P {
        let is_wrapper = self
            .wrappers
            .iter()
            .any(|of| of.0 == found.cast_const().cast());
        if found.is_null() || is_wrapper || self.is_exported(found) {
            return found;
        }
        for (slot, wrapper) in self.real.iter().zip(&self.wrappers) {
            let null = std::ptr::null_mut();
            // The wrapper is called with the address that this function returns, so it finds the driver's function.
            let was = slot.compare_exchange(null, found, Ordering::AcqRel, Ordering::Acquire);
            if was.unwrap_or_else(|known| known) == found || was.is_ok() {
                wrapped::handed_out();
                return wrapper.0.cast_mut().cast();
            }
        }
        found
    }

    /// The driver's function in a slot; null: the driver is not loaded, or does not have it.
    fn real(&self, slot: usize) -> P {
        let known = self.real[slot].load(Ordering::Acquire);
        match slot.checked_sub(FOUND) {
            Some(n) if known.is_null() => {
                let name = self.exported[n].0;
                let found = guarded(Cost::Counters, known, || wrapped::driver_function(name));
                self.real[slot].store(found, Ordering::Release);
                wrapped::handed_out();
                found
            }
            _ => known,
        }
    }
}

/// The number of `cuGetProcAddress`, which is not observed and needs no callback id.
const NOT_OBSERVED: c_uint = 0;

/// Calls a function of the driver: the body of all wrappers.
///
/// # Safety
/// They are the arguments of the function with this number.
unsafe fn call_driver(
    id: c_uint,
    arguments: *mut c_void,
    call: &mut dyn FnMut() -> CUresult,
) -> CUresult {
    // SAFETY: the caller's promise.
    unsafe {
        if id == NOT_OBSERVED {
            replace(arguments, call)
        } else {
            wrapped::observe(id, arguments, call)
        }
    }
}

/// Defines families. Each has its number in CUPTI's callbacks (or one of [`wrapped`]'s, if the function is not observed), its exported names, and its arguments.
macro_rules! families {
    ($(
        $name:ident = $id:expr, [$($exported:ident $slot:literal),*], ($($argument:ident: $type:ty),*);
    )*) => {
        static FAMILIES: &[&Family] = &[$(&$name::FAMILY),*];

        $(
        #[expect(non_snake_case, reason = "the driver's names")]
        mod $name {
            use super::*;

            /// The arguments, as in CUPTI's callbacks.
            #[repr(C)]
            struct Arguments {
                $($argument: $type,)*
            }

            /// # Safety
            /// As the driver's function in this slot.
            unsafe extern "C" fn wrapper<const SLOT: usize>($($argument: $type),*) -> CUresult {
                let real = FAMILY.real(SLOT);
                if real.is_null() {
                    return CUresult::NOT_INITIALIZED;
                }
                // SAFETY: the type of the driver's function, except for arguments in registers.
                let real = unsafe {
                    std::mem::transmute::<P, unsafe extern "C" fn($($type),*) -> CUresult>(real)
                };
                let mut arguments = Arguments { $($argument),* };
                let arguments = &raw mut arguments;
                // SAFETY: the caller's promise. `instrument` may have replaced the code.
                let mut call = || unsafe { real($((*arguments).$argument),*) };
                // SAFETY: the arguments of this function.
                unsafe { call_driver($id, arguments.cast(), &mut call) }
            }

            $(
                /// # Safety
                /// As the driver's function.
                #[unsafe(naked)]
                #[cfg_attr(feature = "shared", unsafe(no_mangle))]
                unsafe extern "C" fn $exported() {
                    // The caller's arguments stay where they are.
                    $crate::exports::machine::jump!(wrapper::<{ FOUND + $slot }>)
                }
            )*

            pub static FAMILY: Family = Family {
                name: c_name(concat!(stringify!($name), "\0")),
                real: [const { AtomicPtr::new(std::ptr::null_mut()) }; SLOTS],
                wrappers: [
                    Address(wrapper::<0> as *const ()),
                    Address(wrapper::<1> as *const ()),
                    Address(wrapper::<2> as *const ()),
                    Address(wrapper::<3> as *const ()),
                ],
                exported: &[$((c_name(concat!(stringify!($exported), "\0")), Address($exported as *const ()))),*],
            };
        }
        )*
    };
}

families! {
    cuGetProcAddress = NOT_OBSERVED, [cuGetProcAddress 0, cuGetProcAddress_v2 1],
        (symbol: *const c_char, function: *mut P, version: c_int, flags: u64, status: P);
    cuInit = cbid::cuInit, [cuInit 0], (flags: c_uint);
    cuCtxCreate = cbid::cuCtxCreate, [cuCtxCreate 0, cuCtxCreate_v2 1, cuCtxCreate_v3 2, cuCtxCreate_v4 3],
        (context: P, second: usize, third: usize, fourth: usize, fifth: usize);
    cuCtxDestroy = cbid::cuCtxDestroy_v2, [cuCtxDestroy 0, cuCtxDestroy_v2 1], (context: CUcontext);
    cuDevicePrimaryCtxRetain = cbid::cuDevicePrimaryCtxRetain, [cuDevicePrimaryCtxRetain 0], (context: P, device: CUdevice);
    cuDevicePrimaryCtxRelease = cbid::cuDevicePrimaryCtxRelease_v2,
        [cuDevicePrimaryCtxRelease 0, cuDevicePrimaryCtxRelease_v2 1], (device: CUdevice);
    cuDevicePrimaryCtxReset = cbid::cuDevicePrimaryCtxReset_v2,
        [cuDevicePrimaryCtxReset 0, cuDevicePrimaryCtxReset_v2 1], (device: CUdevice);
    cuModuleLoad = cbid::cuModuleLoad, [cuModuleLoad 0], (module: P, file: P);
    cuModuleLoadData = cbid::cuModuleLoadData, [cuModuleLoadData 0], (module: P, image: P);
    cuModuleLoadDataEx = cbid::cuModuleLoadDataEx, [cuModuleLoadDataEx 0],
        (module: P, image: P, count: c_uint, options: P, values: P);
    cuModuleLoadFatBinary = cbid::cuModuleLoadFatBinary, [cuModuleLoadFatBinary 0], (module: P, image: P);
    cuLinkAddData = wrapped::LINK_DATA, [cuLinkAddData 0, cuLinkAddData_v2 1],
        (state: P, kind: c_int, data: P, size: usize, name: P, count: c_uint, options: P, values: P);
    cuLinkAddFile = wrapped::LINK_FILE, [cuLinkAddFile 0, cuLinkAddFile_v2 1],
        (state: P, kind: c_int, file: P, count: c_uint, options: P, values: P);
    cuModuleUnload = cbid::cuModuleUnload, [cuModuleUnload 0], (module: CUmodule);
    cuLibraryLoadData = cbid::cuLibraryLoadData, [cuLibraryLoadData 0],
        (library: P, code: P, options: P, values: P, count: c_uint, library_options: P, library_values: P, library_count: c_uint);
    cuLibraryLoadFromFile = cbid::cuLibraryLoadFromFile, [cuLibraryLoadFromFile 0],
        (library: P, file: P, options: P, values: P, count: c_uint, library_options: P, library_values: P, library_count: c_uint);
    cuLibraryUnload = cbid::cuLibraryUnload, [cuLibraryUnload 0], (library: CUlibrary);
    cuStreamBeginCapture = cbid::cuStreamBeginCapture_v2,
        [cuStreamBeginCapture 0, cuStreamBeginCapture_ptsz 1, cuStreamBeginCapture_v2 2, cuStreamBeginCapture_v2_ptsz 3],
        (stream: CUstream, mode: c_int);
    cuStreamBeginCaptureToGraph = cbid::cuStreamBeginCaptureToGraph,
        [cuStreamBeginCaptureToGraph 0, cuStreamBeginCaptureToGraph_ptsz 1],
        (stream: CUstream, graph: P, dependencies: P, edges: P, count: usize, mode: c_int);
    cuStreamBeginRecaptureToGraph = cbid::cuStreamBeginRecaptureToGraph,
        [cuStreamBeginRecaptureToGraph 0, cuStreamBeginRecaptureToGraph_ptsz 1],
        (stream: CUstream, mode: c_int, graph: P, callback: P, user: P);
    cuStreamDestroy = cbid::cuStreamDestroy_v2, [cuStreamDestroy 0, cuStreamDestroy_v2 1], (stream: CUstream);
    cuGreenCtxCreate = cbid::cuGreenCtxCreate, [cuGreenCtxCreate 0], (green: P, resources: P, device: CUdevice, flags: c_uint);
    cuGreenCtxDestroy = cbid::cuGreenCtxDestroy, [cuGreenCtxDestroy 0], (green: CUgreenCtx);
    cuCtxFromGreenCtx = cbid::cuCtxFromGreenCtx, [cuCtxFromGreenCtx 0], (context: P, green: CUgreenCtx);
    cuStreamEndCapture = cbid::cuStreamEndCapture, [cuStreamEndCapture 0, cuStreamEndCapture_ptsz 1], (stream: CUstream, graph: P);
}

/// The first arguments of `cuGetProcAddress`.
#[repr(C)]
struct Lookup {
    symbol: *const c_char,
    function: *mut P,
}

/// Calls `cuGetProcAddress`. If the driver has found a function that devprof wraps, the program gets the wrapper.
///
/// # Safety
/// They are the arguments of `cuGetProcAddress`.
unsafe fn replace(arguments: *const c_void, call: &mut dyn FnMut() -> CUresult) -> CUresult {
    let result = call();
    if result == CUresult::SUCCESS {
        guarded(Cost::Counters, (), || {
            // SAFETY: the driver has accepted the arguments: a C string, and a variable that it has written.
            unsafe {
                let lookup = &*arguments.cast::<Lookup>();
                if lookup.symbol.is_null() || lookup.function.is_null() {
                    return;
                }
                if let Some(family) = find(CStr::from_ptr(lookup.symbol)) {
                    *lookup.function = family.wrapper(*lookup.function);
                }
            }
        });
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_with_and_without_their_version() {
        for name in [c"cuCtxDestroy", c"cuCtxDestroy_v2"] {
            assert!(std::ptr::eq(find(name).unwrap(), &cuCtxDestroy::FAMILY));
        }
        for name in [c"", c"cu", c"cuCtxDestroy_v3", c"cuLaunchKernel"] {
            assert!(find(name).is_none(), "{name:?}");
        }
        for family in FAMILIES {
            assert!(family.exported.len() <= SLOTS - FOUND);
            assert!(family.exported.iter().any(|(name, _)| *name == family.name));
        }
    }

    #[test]
    fn each_function_has_one_wrapper() {
        let family = &cuModuleUnload::FAMILY;
        let functions: [u8; FOUND + 1] = Default::default();
        let address = |n: usize| (&raw const functions[n]).cast_mut().cast::<c_void>();
        let wrappers: Vec<P> = (0..FOUND).map(|n| family.wrapper(address(n))).collect();
        assert!(wrapped::is_handed_out());
        for n in 0..FOUND {
            assert_eq!(family.wrapper(address(n)), wrappers[n]);
            assert_eq!(family.real(n), address(n));
            assert_eq!(family.wrapper(wrappers[n]), wrappers[n]);
            assert!(!wrappers[..n].contains(&wrappers[n]));
        }
        // There is no slot left.
        assert_eq!(family.wrapper(address(FOUND)), address(FOUND));
        assert!(family.wrapper(std::ptr::null_mut()).is_null());
    }
}
