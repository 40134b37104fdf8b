//! Functions of other libraries that devprof exports under their names. Each exported function jumps to a target and leaves
//! its arguments where they are, so devprof need not know all types. The first target is [`first`]: it calls
//! [`Replaced::resolve`], which usually sets another target, so that later calls of a function that is not recorded cost
//! only the jump.

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
    resolve: extern "C" fn(&'static Replaced) -> *const (),
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

/// The first target. The exported function has put the address of its [`Replaced`] into `r11`. All registers that can contain
/// arguments are preserved, and the number of those in vector registers.
///
/// # Safety
/// Only exported functions jump here.
#[unsafe(naked)]
unsafe extern "C" fn first() {
    std::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8",
        "push r9",
        "push rax",
        "sub rsp, 128",
        "movups [rsp], xmm0",
        "movups [rsp + 16], xmm1",
        "movups [rsp + 32], xmm2",
        "movups [rsp + 48], xmm3",
        "movups [rsp + 64], xmm4",
        "movups [rsp + 80], xmm5",
        "movups [rsp + 96], xmm6",
        "movups [rsp + 112], xmm7",
        "mov rdi, r11",
        "call qword ptr [rdi + {resolve}]",
        "mov r11, rax",
        "movups xmm0, [rsp]",
        "movups xmm1, [rsp + 16]",
        "movups xmm2, [rsp + 32]",
        "movups xmm3, [rsp + 48]",
        "movups xmm4, [rsp + 64]",
        "movups xmm5, [rsp + 80]",
        "movups xmm6, [rsp + 96]",
        "movups xmm7, [rsp + 112]",
        "add rsp, 128",
        "pop rax",
        "pop r9",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "jmp r11",
        resolve = const offset_of!(Replaced, resolve),
    )
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
                    std::arch::naked_asm!(
                        "lea r11, [rip + {table} + {offset}]",
                        "jmp qword ptr [r11]",
                        table = sym $table,
                        offset = const Index::$name as usize * size_of::<Replaced>(),
                    )
                }
            )*
        }
    };
}
pub(crate) use replaced;
