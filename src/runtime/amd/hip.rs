//! HIP, if it is in the process: waits for work that it has not submitted to HSA yet, and copies if HSA cannot. Almost every
//! function of HIP initializes it, so none is called unless the program has used HIP. Mirrors `hip/hip_runtime_api.h` of HIP 6
//! and 7.

use super::libraries::Libraries;
use crate::sys::env;
use crate::sys::loader::{self, c_name};
use libloading::os::unix::Library;
use std::ffi::{CStr, c_int, c_uint, c_void};
use std::sync::OnceLock;

pub const LIBRARIES: Libraries = Libraries {
    names: &[
        "libamdhip64.so.7",
        "libamdhip64.so.6",
        "libamdhip64.so.5",
        "libamdhip64.so",
    ],
    renamed: Some(("libamdhip64", c"hipDeviceSynchronize")),
};

/// How HIP was found.
#[derive(Clone, Copy)]
enum Found {
    ByName,
    ByPrefix,
    /// In the global symbol scope.
    ByFunctions,
    Linked,
}

/// `hipMemcpyDeviceToHost`.
const DEVICE_TO_HOST: c_int = 2;

macro_rules! functions {
    ($($symbol:ident $name:ident: fn($($arg:ty),*) -> $ret:ty),* $(,)?) => {
        struct Hip {
            $($name: unsafe extern "C" fn($($arg),*) -> $ret,)*
            found: Found,
        }

        /// The symbols, in the order of [`LINKED`].
        const SYMBOLS: &[&CStr] = &[$(c_name(concat!(stringify!($symbol), "\0"))),*];

        // Weak references, which are null if the program does not contain the functions.
        std::arch::global_asm!(
            ".pushsection .data.rel.ro.devprof_hip,\"aw\",@progbits",
            $(concat!(".weakref devprof_weak_", stringify!($symbol), ", ", stringify!($symbol)),)*
            ".hidden devprof_linked_hip",
            ".globl devprof_linked_hip",
            ".balign 8",
            "devprof_linked_hip:",
            $(concat!(".quad devprof_weak_", stringify!($symbol)),)*
            ".popsection",
        );

        impl Hip {
            fn resolve() -> Option<Hip> {
                let named = LIBRARIES.named().map(|library| (library, Found::ByName));
                let library = named.or_else(|| Some((LIBRARIES.renamed()?, Found::ByPrefix)));
                let (library, mut found) = library.unzip();
                let mut n = 0..;
                let hip = Hip {
                    $($name: {
                        let (function, found_here) = find(library.as_ref(), n.next()?)?;
                        found.get_or_insert(found_here);
                        // SAFETY: the type of the function in hip_runtime_api.h; the library is never unloaded.
                        unsafe {
                            std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($arg),*) -> $ret>(function)
                        }
                    },)*
                    found: found?,
                };
                // The functions are used until the process ends.
                std::mem::forget(library);
                Some(hip)
            }
        }
    };
}

functions! {
    hipGetDeviceCount get_device_count: fn(*mut c_int) -> c_int,
    hipSetDevice set_device: fn(c_int) -> c_int,
    hipDeviceSynchronize device_synchronize: fn() -> c_int,
    hipDevicePrimaryCtxGetState primary_context_state: fn(c_int, *mut c_uint, *mut c_int) -> c_int,
}

unsafe extern "C" {
    /// The functions of HIP if it is linked statically into the program, together with the archive.
    #[link_name = "devprof_linked_hip"]
    static LINKED: [*mut c_void; SYMBOLS.len()];
}

fn hip() -> Option<&'static Hip> {
    static HIP: OnceLock<Hip> = OnceLock::new();
    if let Some(hip) = HIP.get() {
        return Some(hip);
    }
    let hip = Hip::resolve()?;
    Some(HIP.get_or_init(|| hip))
}

/// A function of HIP, by its index in [`SYMBOLS`]: from `library`, or, if HIP has another file name, from the global
/// symbol scope, or else the statically linked one.
fn find(library: Option<&Library>, n: usize) -> Option<(*mut c_void, Found)> {
    let symbol = SYMBOLS.get(n)?;
    let found = match library {
        // SAFETY: not called here.
        Some(library) => unsafe { library.get::<*mut c_void>(symbol.to_bytes_with_nul()) }
            .map_or(std::ptr::null_mut(), |found| *found),
        None => global_symbol(symbol),
    };
    // SAFETY: written only by the static and the dynamic linker.
    let linked = unsafe { *LINKED.get(n)? };
    match (found.is_null(), is_in_devprof(linked)) {
        (false, _) => Some((found, Found::ByFunctions)),
        (true, false) if !linked.is_null() => Some((linked, Found::Linked)),
        _ => None,
    }
}

/// Whether a function is in the same file as this instance of devprof. devprof defines some of HIP's functions for traces.
fn is_in_devprof(function: *const c_void) -> bool {
    loader::are_in_same_file(function, is_in_devprof as *const c_void)
}

/// The function of this name in the global symbol scope, except devprof's. Null if there is none.
fn global_symbol(name: &CStr) -> *mut c_void {
    // SAFETY: `dlsym` with a C string.
    let first = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    match is_in_devprof(first) {
        // SAFETY: as above.
        true => unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) },
        false => first,
    }
}

/// The function that a call of `symbol` would reach without devprof: the one in the next file in symbol search order, or
/// else in the first of the libraries that is loaded. (A library that was loaded with RTLD_LOCAL is not in the search
/// order.)
pub fn next_function(symbol: &CStr, libraries: &Libraries) -> Option<*mut c_void> {
    // SAFETY: `dlsym` with a C string.
    let next = unsafe { libc::dlsym(libc::RTLD_NEXT, symbol.as_ptr()) };
    if !next.is_null() {
        // The function is used until the process ends.
        loader::keep_loaded(next);
        return Some(next);
    }
    let library = libraries.loaded()?;
    // SAFETY: not called here.
    let found = unsafe { library.get::<*mut c_void>(symbol.to_bytes_with_nul()) };
    let function = found.ok().map(|found| *found);
    // As above.
    std::mem::forget(library);
    function
}

/// Copies with `hipMemcpy`. Returns false if HIP is not in the process, or if the copy fails.
///
/// # Safety
/// `to` has `size` bytes, and `from` is in memory that is allocated on an agent.
pub unsafe fn copy_to_host(to: *mut c_void, from: *const c_void, size: usize) -> bool {
    type Memcpy = unsafe extern "C" fn(*mut c_void, *const c_void, usize, c_int) -> c_int;
    let Some(memcpy) = next_function(c"hipMemcpy", &LIBRARIES) else {
        return false;
    };
    // SAFETY: the type of the function in hip_runtime_api.h, and the caller's promise.
    unsafe {
        std::mem::transmute::<*mut c_void, Memcpy>(memcpy)(to, from, size, DEVICE_TO_HOST) == 0
    }
}

/// Why HIP does not wait for a device.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// A stream is being captured.
    Capturing,
    /// The device has failed.
    Failed,
}

/// Waits until all work in HIP's streams on the devices in use is complete, without a time limit. While a stream is captured,
/// HIP refuses that, and makes all captures invalid. HIP must have been used.
///
/// Changes the thread's current device.
pub fn wait_for_devices() -> Result<(), Refusal> {
    /// The errors from `hipErrorStreamCaptureUnsupported` on are about captures (`hip_runtime_api.h`).
    const CAPTURE: c_int = 900;
    let Some(hip) = hip() else { return Ok(()) };
    let check = |error| match error {
        0 => Ok(()),
        CAPTURE.. => Err(Refusal::Capturing),
        _ => Err(Refusal::Failed),
    };
    let mut count = 0;
    // SAFETY: HIP's functions with arguments of their types.
    unsafe {
        let mut result = check((hip.get_device_count)(&raw mut count));
        for device in 0..count {
            let (mut flags, mut active) = (0, 0);
            if (hip.primary_context_state)(device, &raw mut flags, &raw mut active) == 0
                && active != 0
            {
                // The other devices are waited for, too.
                let waited = check((hip.set_device)(device))
                    .and_then(|()| check((hip.device_synchronize)()));
                result = result.and(waited);
            }
        }
        result
    }
}

/// Where HIP is and how it was found, for a message.
pub fn describe() -> String {
    let Some(hip) = hip() else {
        return "HIP is not loaded".to_owned();
    };
    let path = loader::path_of(hip.device_synchronize as *const c_void).unwrap_or_default();
    let path = path.display();
    match hip.found {
        Found::ByName => format!("HIP is {path}, found by its name"),
        Found::ByPrefix => format!("HIP is {path}, found by the beginning of its file name"),
        Found::ByFunctions => format!("HIP is {path}, found by its functions"),
        Found::Linked => format!("HIP is linked into {path}"),
    }
}

/// Whether HIP is in the process.
pub fn is_loaded() -> bool {
    hip().is_some()
}

/// Whether this is the address of a function of HIP.
pub fn contains(function: usize) -> bool {
    hip().is_some_and(|hip| {
        loader::are_in_same_file(
            function as *const c_void,
            hip.device_synchronize as *const c_void,
        )
    })
}

/// Whether HIP's own threads submit the program's work, some time after the calls that launch it. By default the launching
/// call does.
pub fn submits_later() -> bool {
    env::env("AMD_DIRECT_DISPATCH").is_some_and(|value| value == "0" || value == "false")
}
