//! Functions of other libraries that devprof exports under their names. Each exported function jumps to a target and leaves
//! its arguments where they are, so devprof need not know all types ([`machine`](super::machine)). The first target is [`first`]:
//! it calls
//! [`Replaced::resolve`], which usually sets another target, so that later calls of a function that is not recorded cost
//! only the jump.

use super::machine::jump_to_resolved;
use crate::support::settings::{Tracing, settings};
use std::ffi::{CStr, c_void};
use std::mem::offset_of;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A pointer of any type, or a handle.
pub type P = *mut c_void;

#[repr(C)]
pub struct Replaced {
    /// Where the exported function jumps to. The first field: see [`replaced`].
    target: AtomicPtr<()>,
    /// The other library's function; null until it was found.
    pub real: AtomicPtr<()>,
    /// Returns the address to jump to. Called by [`first`].
    pub(super) resolve: extern "C" fn(&'static Replaced) -> *const (),
    pub symbol: &'static CStr,
    exported: *const (),
    pub calls: Calls,
}

/// The targets of an exported function, in addition to the other library's function.
pub struct Calls {
    /// Records or observes the call. Has the type of the function, and so has `without`.
    pub recorded: *const (),
    /// For a process without the other library.
    pub without: *const (),
    /// Whether a trace with these settings needs `recorded`.
    pub are_recorded: fn(&Tracing) -> bool,
}

// SAFETY: code does not change.
unsafe impl Sync for Replaced {}

impl Replaced {
    pub const fn new(
        symbol: &'static CStr,
        resolve: extern "C" fn(&'static Replaced) -> *const (),
        exported: *const (),
        calls: Calls,
    ) -> Replaced {
        Replaced {
            target: AtomicPtr::new(first as *mut ()),
            real: AtomicPtr::new(std::ptr::null_mut()),
            resolve,
            symbol,
            exported,
            calls,
        }
    }

    /// Sets the other library's function, which may be null, and the target. Returns the target.
    pub fn set(&self, real: P) -> *const () {
        let is_recorded = settings().is_traced() && (self.calls.are_recorded)(&settings().tracing);
        let target = if is_recorded {
            self.calls.recorded
        } else if real.is_null() {
            self.calls.without
        } else {
            real.cast()
        };
        // Before the target: `recorded` reads it.
        self.real.store(real.cast(), Ordering::Release);
        self.set_target(target);
        target
    }

    pub fn target(&self) -> *const () {
        self.target.load(Ordering::Acquire)
    }

    /// Release: a thread that jumps to the target finds the other library's function.
    pub fn set_target(&self, target: *const ()) {
        self.target.store(target.cast_mut(), Ordering::Release);
    }

    /// Prepares [`Replaced::replace`], which must not use the dynamic loader.
    pub fn prepare(&'static self) {
        if self.real.load(Ordering::Relaxed).is_null() {
            (self.resolve)(self);
        }
    }

    /// The function that a program gets instead of `found`: the exported one if `found` is the other library's function and this
    /// run records its calls, otherwise `found`.
    pub fn replace(&self, found: P) -> P {
        // Acquire: the target was set after the other library's function.
        let is_recorded = self.target() == self.calls.recorded;
        if is_recorded && self.real.load(Ordering::Relaxed) == found.cast() {
            self.exported.cast_mut().cast()
        } else {
            found
        }
    }
}

/// The first target. Only exported functions jump here, with the address of their [`Replaced`].
///
/// # Safety
/// As for the exported function.
#[unsafe(naked)]
unsafe extern "C" fn first() {
    jump_to_resolved!(offset_of!(Replaced, resolve))
}

/// Defines the table `$table` and the exported functions, which begin by calling `$resolve`. For each function its name, its
/// symbol, and its [`Calls`]. `$attribute` is for the module of the exported functions.
macro_rules! replaced {
    ($(#[$attribute:meta])? $table:ident by $resolve:path: $($name:ident = $symbol:expr, $calls:expr;)*) => {
        /// Indices in the table.
        #[expect(non_camel_case_types)]
        enum Index {
            $($name,)*
        }

        static $table: [$crate::exports::replaced::Replaced; [$(stringify!($name)),*].len()] = [$(
            $crate::exports::replaced::Replaced::new(
                $crate::sys::loader::c_name(concat!($symbol, "\0")),
                $resolve,
                exported::$name as *const (),
                $calls,
            ),
        )*];

        $(#[$attribute])?
        mod exported {
            use super::{Index, $table};
            use $crate::exports::replaced::Replaced;

            $(
                /// # Safety
                /// As for the function of this name.
                #[unsafe(naked)]
                #[cfg_attr(feature = "shared", unsafe(export_name = $symbol))]
                #[cfg_attr(not(feature = "shared"), unsafe(export_name = concat!("devprof_", $symbol)))]
                pub unsafe extern "C" fn $name() {
                    $crate::exports::machine::jump_to_target!(
                        $table,
                        Index::$name as usize * size_of::<Replaced>()
                    )
                }
            )*
        }
    };
}
pub(crate) use replaced;
