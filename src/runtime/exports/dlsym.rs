//! `dlsym` of the shared library: a program that looks up a function of HIP or roctx in its library gets devprof's, and a
//! program that looks up some functions of the CUDA driver gets wrappers ([`cuda`]).
//!
//! The C library's `dlsym` finds the caller by its return address, for RTLD_DEFAULT and RTLD_NEXT. Therefore everything
//! that does not concern these functions jumps to it (or to the next library that defines `dlsym`). HIP and roctx concern
//! only a trace. RTLD_DEFAULT and the program's handle need nothing else for them: the search finds the functions of the
//! preloaded shared library. For CUDA they need more: a program may search for the driver's functions to find out whether
//! there is a driver, so devprof's are not found unless the driver's are.
//!
//! `dlsym` may be called by an implementation of `malloc`, and before this library's constructor. Therefore nothing is
//! allocated unless the symbol's name begins with `hip` or `roc`, or is the name of a wrapped function.

use super::machine::jump_with_caller;
use super::replaced::{Calls, P, Replaced, replaced};
use super::{cuda, hip, roctx};
use crate::nvidia::wrapped;
use crate::support::panic_guard::{Cost, guarded};
use crate::support::settings::settings;
use crate::sys::loaded_files::is_in_local_scope;
use crate::sys::{env, loader};
use std::ffi::{CStr, c_char};
use std::sync::atomic::Ordering;

type Dlsym = unsafe extern "C" fn(handle: P, name: *const c_char) -> P;

// Its targets are [`filter_cuda`], or with a trace [`filter`].
replaced! { DLSYM by find_next:
    dlsym = "dlsym", Calls {
        recorded: filter as *const (),
        without: no_dlsym as *const (),
        are_recorded: |_| true,
    };
}

/// Continues with what [`any_function`] returns.
///
/// # Safety
/// Only the exported function jumps here.
#[unsafe(naked)]
unsafe extern "C" fn filter() {
    jump_with_caller!(any_function)
}

/// Continues with what [`function_of_cuda`] returns.
///
/// # Safety
/// Only the exported function jumps here.
#[unsafe(naked)]
unsafe extern "C" fn filter_cuda() {
    jump_with_caller!(function_of_cuda)
}

/// [`recorded_symbol`], if a symbol whose name begins with `hip` or `roc` is looked up in a library. Otherwise as
/// [`function_of_cuda`].
///
/// # Safety
/// As for `dlsym`.
unsafe extern "C" fn any_function(handle: P, name: *const c_char) -> *const () {
    // SAFETY: `dlsym` gets a C string.
    let bytes = unsafe { CStr::from_ptr(name) }.to_bytes();
    let is_search = handle == libc::RTLD_DEFAULT || handle == libc::RTLD_NEXT;
    if !is_search && (bytes.starts_with(b"hip") || bytes.starts_with(b"roc")) {
        return recorded_symbol as *const ();
    }
    // SAFETY: the caller's promise.
    unsafe { function_of_cuda(handle, name) }
}

/// [`wrapped_symbol`], if the symbol is a wrapped function, otherwise the next `dlsym`. Allocates nothing.
///
/// # Safety
/// As for `dlsym`.
unsafe extern "C" fn function_of_cuda(_: P, name: *const c_char) -> *const () {
    // SAFETY: `dlsym` gets a C string.
    let name = unsafe { CStr::from_ptr(name) };
    if name.to_bytes().starts_with(b"cu") && cuda::find(name).is_some() {
        wrapped_symbol as *const ()
    } else {
        // Found before the first filter became the target.
        DLSYM[0].real.load(Ordering::Relaxed)
    }
}

/// If there is no other `dlsym`.
extern "C" fn no_dlsym(_: P, _: *const c_char) -> P {
    std::ptr::null_mut()
}

/// Finds the next `dlsym`, and sets the target. Returns the address to jump to.
extern "C" fn find_next(dlsym: &'static Replaced) -> *const () {
    let next = loader::next_dlsym();
    if next.is_null() {
        return dlsym.calls.without;
    }
    dlsym.real.store(next.cast(), Ordering::Relaxed);
    let target = match env::is_set("DEVPROF_TRACE") {
        Some(true) => dlsym.calls.recorded,
        Some(false) => filter_cuda as *const (),
        // The next call decides.
        None => return next.cast(),
    };
    dlsym.set_target(target);
    target
}

/// The next `dlsym`.
fn next() -> Dlsym {
    let next = DLSYM[0].real.load(Ordering::Relaxed);
    // SAFETY: the address of a function of this type, found before the first filter became the target.
    unsafe { std::mem::transmute::<*mut (), Dlsym>(next) }
}

/// Looks up a symbol in a library, and replaces functions of HIP and roctx.
///
/// # Safety
/// As for `dlsym`, with a handle that is not RTLD_DEFAULT or RTLD_NEXT, for which the caller matters.
unsafe extern "C" fn recorded_symbol(handle: P, name: *const c_char, caller: P) -> P {
    let next = next();
    // Code that may call the dynamic loader comes first: `dlerror` must return the error of the program's lookup.
    let function = guarded(Cost::Dispatches, None, || {
        if !settings().is_traced() {
            DLSYM[0].set_target(filter_cuda as *const ());
            return None;
        }
        // devprof needs the libraries' own functions.
        if loader::are_in_same_file(caller, find_next as *const _) {
            return None;
        }
        // SAFETY: `dlsym` gets a C string.
        let name = unsafe { CStr::from_ptr(name) };
        let function = hip::find(name).or_else(|| roctx::find(name))?;
        function.prepare();
        Some(function)
    });
    // SAFETY: the program's arguments.
    let found = unsafe { next(handle, name) };
    match function {
        Some(function) if !found.is_null() => function.replace(found),
        _ => found,
    }
}

/// A function of the driver, if a search by the caller finds it because a library that was opened with RTLD_LOCAL needs both
/// the caller's file and the driver. `after_caller`: the search is for the next symbol.
fn local_function(name: &CStr, caller: P, after_caller: bool) -> P {
    let found = wrapped::driver_function(name);
    let is_found = !found.is_null() && is_in_local_scope(caller, found, after_caller);
    if is_found {
        found
    } else {
        std::ptr::null_mut()
    }
}

/// Looks up a function of the CUDA driver that devprof wraps.
///
/// # Safety
/// As for `dlsym`. `caller`: its return address.
unsafe extern "C" fn wrapped_symbol(handle: P, name: *const c_char, caller: P) -> P {
    let next = next();
    // Code that may call the dynamic loader comes first: `dlerror` must return the error of the program's lookup.
    // SAFETY: `dlsym` gets a C string.
    let family = cuda::find(unsafe { CStr::from_ptr(name) });
    let is_replaced = guarded(Cost::Counters, false, || {
        // devprof needs the driver's own functions.
        !loader::are_in_same_file(caller, find_next as *const _) && !settings().disabled
    });
    // The program's search would find the functions that this library exports, even without a driver. The driver's functions
    // come after them. (The next `dlsym` takes the caller of this function for the search: this library.)
    let (default, after_this) = (libc::RTLD_DEFAULT, libc::RTLD_NEXT);
    let is_search = handle == default || handle == after_this;
    // SAFETY: the program's arguments, or a search after this library.
    let mut found = unsafe { next(if is_search { after_this } else { handle }, name) };
    if found.is_null() && is_search {
        // The search above did not include the libraries that only the caller's scope has.
        found = guarded(Cost::Counters, found, || {
            // SAFETY: as above.
            local_function(
                unsafe { CStr::from_ptr(name) },
                caller,
                handle == after_this,
            )
        });
        if found.is_null() {
            // SAFETY: as above. It sets what `dlerror` returns.
            return unsafe { next(after_this, name) };
        }
    }
    let Some(family) = family else { return found };
    if family.is_exported(found) {
        // SAFETY: as above.
        found = unsafe { next(after_this, name) };
    }
    if is_replaced {
        family.wrapper(found)
    } else {
        found
    }
}
