//! The stack unwinder for panics in the archive, found when the first panic needs it.
//!
//! Rust's standard library refers to `_Unwind_RaiseException` and other functions of libgcc_s. A program that is linked
//! with `-rtlib=compiler-rt -unwindlib=none` has no such library on its link line, so the archive must not refer to it.
//! tools/build-runtime renames the references in the archive to the `devprof_Unwind_…` functions below. They call the
//! unwinder that is already in the process, or else load libgcc_s. The shared library is linked with libgcc_s, and the
//! linker drops these functions from it.
//!
//! All functions come from the same library, because the context that `_Unwind_RaiseException` passes on is private to
//! it.

use std::ffi::{CStr, c_int, c_void};
use std::io::Write;
use std::sync::OnceLock;

/// `_URC_FATAL_PHASE1_ERROR` of `unwind.h`: nothing was unwound. The standard library then aborts.
const FATAL_PHASE1_ERROR: c_int = 3;
/// `_URC_END_OF_STACK` of `unwind.h`.
const END_OF_STACK: c_int = 5;

/// Declares the functions of `unwind.h` (the Itanium C++ ABI's exception handling, level I) that the standard library
/// calls, with what each returns if the process has no unwinder.
macro_rules! forward {
    ($($name:ident = $symbol:literal ($($argument:ident: $type:ty),*) -> $result:ty, else $otherwise:expr;)*) => {
        struct Unwinder {
            $($name: unsafe extern "C-unwind" fn($($type),*) -> $result,)*
        }

        impl Unwinder {
            /// The unwinder in the library `handle`, if it has all functions.
            fn of(handle: *mut c_void) -> Option<Unwinder> {
                Some(Unwinder {
                    $($name: {
                        let function = symbol(handle, $symbol)?;
                        // SAFETY: the type of the function in `unwind.h`.
                        unsafe {
                            std::mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn($($type),*) -> $result>(function)
                        }
                    },)*
                })
            }
        }

        $(
            unsafe extern "C-unwind" fn $name($($argument: $type),*) -> $result {
                match unwinder() {
                    // SAFETY: the caller's arguments.
                    Some(unwinder) => unsafe { (unwinder.$name)($($argument),*) },
                    None => $otherwise,
                }
            }

            // Rust has no other way to define a hidden symbol: `no_mangle` would export it from the shared library.
            std::arch::global_asm!(
                concat!(".pushsection .text.devprof", $symbol, ",\"ax\",@progbits"),
                concat!(".globl devprof", $symbol),
                concat!(".hidden devprof", $symbol),
                concat!(".type devprof", $symbol, ",@function"),
                concat!("devprof", $symbol, ":"),
                $crate::sys::jump_instruction!(),
                ".popsection",
                sym $name,
            );
        )*
    };
}

forward! {
    raise_exception = "_Unwind_RaiseException"(exception: *mut c_void) -> c_int, else no_unwinder();
    resume = "_Unwind_Resume"(exception: *mut c_void) -> !, else std::process::abort();
    delete_exception = "_Unwind_DeleteException"(exception: *mut c_void) -> (), else std::process::abort();
    backtrace = "_Unwind_Backtrace"(callback: *const c_void, argument: *mut c_void) -> c_int, else END_OF_STACK;
    get_gr = "_Unwind_GetGR"(context: *mut c_void, register: c_int) -> usize, else std::process::abort();
    set_gr = "_Unwind_SetGR"(context: *mut c_void, register: c_int, value: usize) -> (), else std::process::abort();
    get_ip = "_Unwind_GetIP"(context: *mut c_void) -> usize, else std::process::abort();
    get_ip_info = "_Unwind_GetIPInfo"(context: *mut c_void, before: *mut c_int) -> usize, else std::process::abort();
    set_ip = "_Unwind_SetIP"(context: *mut c_void, value: usize) -> (), else std::process::abort();
    get_cfa = "_Unwind_GetCFA"(context: *mut c_void) -> usize, else std::process::abort();
    get_language_specific_data = "_Unwind_GetLanguageSpecificData"(context: *mut c_void) -> *mut c_void, else std::process::abort();
    get_region_start = "_Unwind_GetRegionStart"(context: *mut c_void) -> usize, else std::process::abort();
    get_text_rel_base = "_Unwind_GetTextRelBase"(context: *mut c_void) -> usize, else std::process::abort();
    get_data_rel_base = "_Unwind_GetDataRelBase"(context: *mut c_void) -> usize, else std::process::abort();
    find_enclosing_function = "_Unwind_FindEnclosingFunction"(address: *mut c_void) -> *mut c_void, else std::process::abort();
}

fn unwinder() -> Option<&'static Unwinder> {
    static UNWINDER: OnceLock<Option<Unwinder>> = OnceLock::new();
    UNWINDER
        .get_or_init(|| {
            Unwinder::of(libc::RTLD_DEFAULT).or_else(|| {
                // SAFETY: a C string. The constructors of libgcc_s only detect the processor.
                let library = unsafe { libc::dlopen(c"libgcc_s.so.1".as_ptr(), libc::RTLD_NOW) };
                // Never closed: its functions are used until the process ends.
                (!library.is_null()).then(|| Unwinder::of(library))?
            })
        })
        .as_ref()
}

fn symbol(handle: *mut c_void, name: &str) -> Option<*mut c_void> {
    let mut buffer = [0; 64];
    buffer
        .get_mut(..name.len())?
        .copy_from_slice(name.as_bytes());
    let name = CStr::from_bytes_until_nul(&buffer).ok()?;
    // SAFETY: a handle that dlopen returned, or RTLD_DEFAULT; a C string.
    let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// The panic's message is already on stderr, and the standard library aborts the process next.
fn no_unwinder() -> c_int {
    // If stderr cannot be written either, nothing is left to do.
    let _ = writeln!(
        std::io::stderr(),
        "devprof: an internal error aborts the program: libgcc_s.so.1, which is needed to recover from it, cannot be loaded; install it (Debian: libgcc-s1), and report the message above"
    );
    FATAL_PHASE1_ERROR
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unwinder_of_this_process_has_every_function() {
        assert!(Unwinder::of(libc::RTLD_DEFAULT).is_some());
        assert!(symbol(libc::RTLD_DEFAULT, "_Unwind_NoSuchFunction").is_none());
        assert!(symbol(libc::RTLD_DEFAULT, &"x".repeat(64)).is_none());
    }
}
