//! The functions of AMD's two roctx libraries. The shared library exports them, so that it gets the markers of a
//! program that is linked with one of the libraries. FFI: the signatures are those of `roctracer/roctx.h` (libroctx64)
//! and `rocprofiler-sdk-roctx/roctx.h` (librocprofiler-sdk-roctx, which has more functions).
//!
//! As in [`super::hip`], each exported function jumps to the address in its slot. The first call sets all slots:
//! if markers are not recorded, to the library's functions, so that a call costs only the jump. Without the library, a
//! call has the results that both libraries have without a tool (roctracer, roctx.cpp; rocprofiler-sdk, roctx.cpp):
//! levels of nesting from 0, and -1 for a pop without a push; ids of ranges from 1; 0 for everything else.

use super::P;
use crate::amd::hip;
use crate::amd::libraries::Libraries;
use crate::support::panic_guard::{Cost, guarded, guarded_hot};
use crate::support::settings::settings;
use crate::sys::loader::c_name;
use crate::sys::threads;
use crate::trace::markers::{Action, MAX_TEXT};
use crate::trace::streams::{self, NamedStream};
use crate::trace::{self, markers};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::catch_unwind;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

const LIBRARIES: Libraries = Libraries {
    names: &[
        "librocprofiler-sdk-roctx.so.1",
        "librocprofiler-sdk-roctx.so",
        "libroctx64.so.4",
        "libroctx64.so",
    ],
    renamed: None,
};

/// A message or name. Only its first [`MAX_TEXT`] bytes are read.
type Text = *const c_char;

/// The last id of a range that was started without the library.
static LAST_RANGE: AtomicU64 = AtomicU64::new(0);

/// The bytes of a text. NULL has none.
///
/// # Safety
/// `text` is null or a C string, which the caller does not change during its use.
unsafe fn bytes<'a>(text: Text) -> Option<&'a [u8]> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    unsafe {
        let length = libc::strnlen(text, MAX_TEXT);
        Some(std::slice::from_raw_parts(text.cast(), length))
    }
}

/// One row per function: its parameters and its result. In the modules `own` and `recorded` it has the same name.
macro_rules! functions {
    ($($name:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {
        $(
            #[expect(non_snake_case)]
            mod $name {
                use super::*;

                pub type Function = unsafe extern "C" fn($($type),*) -> $result;

                pub static SLOT: AtomicPtr<()> = AtomicPtr::new(first as Function as *mut ());
                /// The library's function, null if there is no library.
                pub static REAL: AtomicPtr<()> = AtomicPtr::new(std::ptr::null_mut());

                /// # Safety
                /// The requirements are those of roctx's function.
                #[unsafe(naked)]
                #[unsafe(export_name = stringify!($name))]
                pub unsafe extern "C" fn exported($(_: $type),*) -> $result {
                    std::arch::naked_asm!("jmp qword ptr [rip + {slot}]", slot = sym SLOT)
                }

                /// The slot's initial value: resolves all functions at the first call of one of them.
                unsafe extern "C" fn first($($arg: $type),*) -> $result {
                    let target = match catch_unwind(resolve) {
                        Ok(()) => SLOT.load(Ordering::Acquire),
                        Err(_) => own::$name as Function as *mut (),
                    };
                    // SAFETY: the library's function of this name or one of the functions below; all have this type.
                    unsafe { std::mem::transmute::<*mut (), Function>(target)($($arg),*) }
                }

                /// The library's function.
                #[inline]
                pub fn real() -> Option<Function> {
                    let real = REAL.load(Ordering::Acquire);
                    // SAFETY: null or the library's function of this name.
                    unsafe { std::mem::transmute::<*mut (), Option<Function>>(real) }
                }
            }
        )*

        /// Sets all slots. Takes no lock: threads that do it at the same time set the same values.
        #[cold]
        fn resolve() {
            let settings = settings();
            $({
                const SYMBOL: &CStr = c_name(concat!(stringify!($name), "\0"));
                let real: P = hip::next_function(SYMBOL, &LIBRARIES).unwrap_or(std::ptr::null_mut());
                // Stored before the slot: `recorded` reads it.
                $name::REAL.store(real.cast(), Ordering::Release);
                let is_recorded = settings.is_traced() && (settings.tracing.markers || controls(stringify!($name)));
                let target = match is_recorded {
                    true => recorded::$name as $name::Function as *mut (),
                    false if real.is_null() => own::$name as $name::Function as *mut (),
                    false => real.cast(),
                };
                $name::SLOT.store(target, Ordering::Release);
            })*
        }

        /// Prepares [`Replacement::of`] for a function of roctx, which must not use the dynamic loader. `None`: roctx
        /// has no function of this name.
        pub fn prepare(symbol: &CStr) -> Option<Replacement> {
            $(if symbol.to_bytes() == stringify!($name).as_bytes() {
                resolve();
                return Some(Replacement {
                    slot: &$name::SLOT,
                    real: $name::REAL.load(Ordering::Acquire),
                    exported: $name::exported as $name::Function as *mut (),
                });
            })*
            None
        }
    };
}

/// What a lookup of a function of roctx in a library returns.
pub struct Replacement {
    slot: &'static AtomicPtr<()>,
    real: *mut (),
    exported: *mut (),
}

impl Replacement {
    /// The exported function if `found` is the library's function and calls of it are recorded, otherwise `found`.
    pub fn of(&self, found: P) -> P {
        let is_recorded = self.slot.load(Ordering::Acquire) != self.real;
        if self.real == found.cast() && is_recorded {
            self.exported.cast()
        } else {
            found
        }
    }
}

functions! {
    roctxMarkA(message: Text) -> ();
    roctxRangePushA(message: Text) -> c_int;
    roctxRangePop() -> c_int;
    roctxRangeStartA(message: Text) -> u64;
    roctxRangeStop(id: u64) -> ();
    roctxProfilerPause(thread: u64) -> c_int;
    roctxProfilerResume(thread: u64) -> c_int;
    roctxNameOsThread(name: Text) -> c_int;
    roctxNameHsaAgent(name: Text, agent: *const u64) -> c_int;
    roctxNameHipDevice(name: Text, device: c_int) -> c_int;
    roctxNameHipStream(name: Text, stream: *const c_void) -> c_int;
    roctxGetThreadId(id: *mut u64) -> c_int;
}

/// Whether a function controls the recording. It does so in every trace, not only in one with markers.
fn controls(name: &str) -> bool {
    matches!(name, "roctxProfilerPause" | "roctxProfilerResume")
}

/// The functions without the library.
#[expect(non_snake_case)]
mod own {
    use super::*;

    pub unsafe extern "C" fn roctxMarkA(_: Text) {}

    pub unsafe extern "C" fn roctxRangePushA(_: Text) -> c_int {
        markers::push_unrecorded() as c_int
    }

    pub unsafe extern "C" fn roctxRangePop() -> c_int {
        markers::pop(0).map_or(-1, |level| level as c_int)
    }

    pub unsafe extern "C" fn roctxRangeStartA(_: Text) -> u64 {
        LAST_RANGE.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub unsafe extern "C" fn roctxRangeStop(_: u64) {}

    pub unsafe extern "C" fn roctxProfilerPause(_: u64) -> c_int {
        0
    }

    pub unsafe extern "C" fn roctxProfilerResume(_: u64) -> c_int {
        0
    }

    pub unsafe extern "C" fn roctxNameOsThread(_: Text) -> c_int {
        0
    }

    pub unsafe extern "C" fn roctxNameHsaAgent(_: Text, _: *const u64) -> c_int {
        0
    }

    pub unsafe extern "C" fn roctxNameHipDevice(_: Text, _: c_int) -> c_int {
        0
    }

    pub unsafe extern "C" fn roctxNameHipStream(_: Text, _: *const c_void) -> c_int {
        0
    }

    pub unsafe extern "C" fn roctxGetThreadId(id: *mut u64) -> c_int {
        if !id.is_null() {
            // SAFETY: the caller's argument, where the function writes the id.
            unsafe { id.write(threads::thread_id().into()) };
        }
        0
    }
}

/// The functions of a program whose markers are recorded. The order of the two parts matters. A thread's range contains
/// what the library does in push and pop. A process range does not contain what the library does in start and stop: its
/// id is known only after the start.
#[expect(non_snake_case)]
mod recorded {
    use super::*;

    pub unsafe extern "C" fn roctxMarkA(message: Text) {
        guarded_hot(Cost::Markers, (), || {
            // SAFETY: the caller's argument.
            markers::record(Action::Mark, 0, unsafe { bytes(message) });
        });
        // SAFETY: the caller's argument.
        unsafe { super::roctxMarkA::real().unwrap_or(own::roctxMarkA)(message) }
    }

    pub unsafe extern "C" fn roctxRangePushA(message: Text) -> c_int {
        let level = guarded_hot(Cost::Markers, 0, || {
            // SAFETY: the caller's argument.
            markers::push(0, unsafe { bytes(message) })
        });
        let real = super::roctxRangePushA::real();
        // SAFETY: the caller's argument.
        real.map_or(level as c_int, |real| unsafe { real(message) })
    }

    pub unsafe extern "C" fn roctxRangePop() -> c_int {
        let real = super::roctxRangePop::real();
        // SAFETY: a function without arguments.
        let level = real.map(|real| unsafe { real() });
        let own = guarded_hot(Cost::Markers, None, || markers::pop(0));
        level.unwrap_or(own.map_or(-1, |level| level as c_int))
    }

    pub unsafe extern "C" fn roctxRangeStartA(message: Text) -> u64 {
        // SAFETY: the caller's argument.
        let id =
            unsafe { super::roctxRangeStartA::real().unwrap_or(own::roctxRangeStartA)(message) };
        guarded_hot(Cost::Markers, (), || {
            // SAFETY: the caller's argument.
            markers::record(Action::Start, id, unsafe { bytes(message) });
        });
        id
    }

    pub unsafe extern "C" fn roctxRangeStop(id: u64) {
        guarded_hot(Cost::Markers, (), || {
            markers::record(Action::Stop, id, None);
        });
        // SAFETY: the caller's argument.
        unsafe { super::roctxRangeStop::real().unwrap_or(own::roctxRangeStop)(id) }
    }

    /// Stops the recording of all threads, as rocprofv3 does.
    pub unsafe extern "C" fn roctxProfilerPause(thread: u64) -> c_int {
        guarded(Cost::Markers, (), || trace::set_recording(false));
        // SAFETY: the caller's argument.
        unsafe { super::roctxProfilerPause::real().unwrap_or(own::roctxProfilerPause)(thread) }
    }

    pub unsafe extern "C" fn roctxProfilerResume(thread: u64) -> c_int {
        // SAFETY: the caller's argument.
        let status = unsafe {
            super::roctxProfilerResume::real().unwrap_or(own::roctxProfilerResume)(thread)
        };
        guarded(Cost::Markers, (), || trace::set_recording(true));
        status
    }

    pub unsafe extern "C" fn roctxNameOsThread(name: Text) -> c_int {
        guarded_hot(Cost::Markers, (), || {
            // SAFETY: the caller's argument.
            markers::record(Action::NameThread, 0, unsafe { bytes(name) });
        });
        // SAFETY: the caller's argument.
        unsafe { super::roctxNameOsThread::real().unwrap_or(own::roctxNameOsThread)(name) }
    }

    pub unsafe extern "C" fn roctxNameHsaAgent(name: Text, agent: *const u64) -> c_int {
        guarded_hot(Cost::Markers, (), || {
            if !agent.is_null() {
                // SAFETY: the caller's arguments: a C string and an `hsa_agent_t`, whose only member is the handle.
                unsafe { markers::record(Action::NameAgent, agent.read(), bytes(name)) };
            }
        });
        // SAFETY: the caller's arguments.
        unsafe { super::roctxNameHsaAgent::real().unwrap_or(own::roctxNameHsaAgent)(name, agent) }
    }

    pub unsafe extern "C" fn roctxNameHipDevice(name: Text, device: c_int) -> c_int {
        guarded_hot(Cost::Markers, (), || {
            if let Ok(device) = u64::try_from(device) {
                // SAFETY: the caller's argument.
                markers::record(Action::NameDevice, device, unsafe { bytes(name) });
            }
        });
        // SAFETY: the caller's arguments.
        unsafe {
            super::roctxNameHipDevice::real().unwrap_or(own::roctxNameHipDevice)(name, device)
        }
    }

    pub unsafe extern "C" fn roctxNameHipStream(name: Text, stream: *const c_void) -> c_int {
        guarded_hot(Cost::Markers, (), || {
            let stream = streams::id(NamedStream::of(stream.cast_mut()));
            // SAFETY: the caller's argument.
            markers::record(Action::NameStream, stream.into(), unsafe { bytes(name) });
        });
        // SAFETY: the caller's arguments.
        unsafe {
            super::roctxNameHipStream::real().unwrap_or(own::roctxNameHipStream)(name, stream)
        }
    }

    pub unsafe extern "C" fn roctxGetThreadId(id: *mut u64) -> c_int {
        // SAFETY: the caller's argument.
        unsafe { super::roctxGetThreadId::real().unwrap_or(own::roctxGetThreadId)(id) }
    }
}
