//! The functions of AMD's two roctx libraries. The shared library exports them, so that it gets the markers of a
//! program that is linked with one of the libraries. FFI: the signatures are from `roctracer/roctx.h` (libroctx64)
//! and `rocprofiler-sdk-roctx/roctx.h` (librocprofiler-sdk-roctx, which has more functions).
//!
//! The first call sets the targets of all functions. Without the library, a call has the results that both libraries have
//! without a tool (roctracer, roctx.cpp; rocprofiler-sdk, roctx.cpp): levels of nesting from 0, and -1 for a pop without a push;
//! ids of ranges from 1; 0 for everything else.

use super::replaced::{Calls, Replaced, replaced};
use crate::amd::hip;
use crate::amd::libraries::Libraries;
use crate::support::panic_guard::{Cost, guarded, guarded_hot};
use crate::support::settings::Tracing;
use crate::sys::threads;
use crate::trace::markers::{Action, MAX_TEXT};
use crate::trace::streams::{self, NamedStream};
use crate::trace::{self, markers};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

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

/// Records a marker or a name.
///
/// # Safety
/// As for [`bytes`].
unsafe fn record(action: Action, value: u64, text: Text) {
    guarded_hot(Cost::Markers, (), || {
        // SAFETY: the caller's promise.
        markers::record(action, value, unsafe { bytes(text) });
    });
}

/// The function of roctx with this symbol. A library that was loaded since the last search may take the place of the earlier
/// library.
pub fn find(symbol: &CStr) -> Option<&'static Replaced> {
    let function = FUNCTIONS
        .iter()
        .find(|function| function.symbol == symbol)?;
    resolve(function);
    Some(function)
}

/// Sets all targets, so that all functions are of the same library. Takes no lock: threads that do it at the same time set the
/// same values.
extern "C" fn resolve(function: &'static Replaced) -> *const () {
    guarded(Cost::Markers, function.calls.without, || {
        for function in &FUNCTIONS {
            let real = hip::next_function(function.symbol, &LIBRARIES);
            function.set(real.unwrap_or(std::ptr::null_mut()));
        }
        function.target()
    })
}

/// The settings of a trace that a function needs to be recorded.
const MARKERS: fn(&Tracing) -> bool = |tracing| tracing.markers;
/// A function that controls the recording does so in every trace, not only in one with markers.
const ALWAYS: fn(&Tracing) -> bool = |_| true;

/// One row per function: its parameters, its result, and when its calls are recorded; what it does without the library; what
/// it does if its calls are recorded, which gets the library's function.
macro_rules! functions {
    ($(
        $name:ident($($arg:ident: $type:ty),*) -> $result:ty, $recorded_in:ident:
        $without:expr, |$library:ident| $recorded:expr;
    )*) => {
        replaced! { #[expect(non_snake_case)] FUNCTIONS by resolve: $(
            $name = stringify!($name), Calls {
                recorded: $name::recorded as *const (),
                without: $name::without as *const (),
                are_recorded: $recorded_in,
            };
        )*}

        $(#[expect(non_snake_case)]
        mod $name {
            use super::*;

            type Function = unsafe extern "C" fn($($type),*) -> $result;

            pub unsafe extern "C" fn without($($arg: $type),*) -> $result {
                $(let _ = $arg;)*
                $without
            }

            pub unsafe extern "C" fn recorded($($arg: $type),*) -> $result {
                let real = FUNCTIONS[Index::$name as usize].real.load(Ordering::Acquire);
                // SAFETY: null or the library's function of this name.
                let $library = unsafe { std::mem::transmute::<*mut (), Option<Function>>(real) };
                // SAFETY: the caller's arguments.
                unsafe { $recorded }
            }
        })*
    };
}

// The order of the library's call and of the record matters. A thread's range contains the library's work in push and pop. A
// process range does not contain the library's work in start and stop: its id is known only after the start.
functions! {
    roctxMarkA(message: Text) -> (), MARKERS: (), |library| {
        record(Action::Mark, 0, message);
        library.unwrap_or(without)(message)
    };
    roctxRangePushA(message: Text) -> c_int, MARKERS: markers::push_unrecorded() as c_int, |library| {
        let level = guarded_hot(Cost::Markers, 0, || markers::push(0, bytes(message)));
        library.map_or(level as c_int, |library| library(message))
    };
    roctxRangePop() -> c_int, MARKERS: level_or_error(markers::pop(0)), |library| {
        let level = library.map(|library| library());
        let own = guarded_hot(Cost::Markers, None, || markers::pop(0));
        level.unwrap_or(level_or_error(own))
    };
    roctxRangeStartA(message: Text) -> u64, MARKERS: LAST_RANGE.fetch_add(1, Ordering::Relaxed) + 1, |library| {
        let id = library.unwrap_or(without)(message);
        record(Action::Start, id, message);
        id
    };
    roctxRangeStop(id: u64) -> (), MARKERS: (), |library| {
        record(Action::Stop, id, std::ptr::null());
        library.unwrap_or(without)(id)
    };
    // Stops the recording of all threads, as rocprofv3 does.
    roctxProfilerPause(thread: u64) -> c_int, ALWAYS: 0, |library| {
        guarded(Cost::Markers, (), || trace::set_recording(false));
        library.unwrap_or(without)(thread)
    };
    roctxProfilerResume(thread: u64) -> c_int, ALWAYS: 0, |library| {
        let status = library.unwrap_or(without)(thread);
        guarded(Cost::Markers, (), || trace::set_recording(true));
        status
    };
    roctxNameOsThread(name: Text) -> c_int, MARKERS: 0, |library| {
        record(Action::NameThread, 0, name);
        library.unwrap_or(without)(name)
    };
    roctxNameHsaAgent(name: Text, agent: *const u64) -> c_int, MARKERS: 0, |library| {
        // An `hsa_agent_t`, whose only member is the handle.
        if !agent.is_null() {
            record(Action::NameAgent, agent.read(), name);
        }
        library.unwrap_or(without)(name, agent)
    };
    roctxNameHipDevice(name: Text, device: c_int) -> c_int, MARKERS: 0, |library| {
        if let Ok(device) = u64::try_from(device) {
            record(Action::NameDevice, device, name);
        }
        library.unwrap_or(without)(name, device)
    };
    roctxNameHipStream(name: Text, stream: *const c_void) -> c_int, MARKERS: 0, |library| {
        guarded_hot(Cost::Markers, (), || {
            let stream = streams::id(NamedStream::of(stream.cast_mut()));
            markers::record(Action::NameStream, stream.into(), bytes(name));
        });
        library.unwrap_or(without)(name, stream)
    };
    roctxGetThreadId(id: *mut u64) -> c_int, MARKERS: get_thread_id(id), |library| {
        library.unwrap_or(without)(id)
    };
}

fn level_or_error(level: Option<u32>) -> c_int {
    level.map_or(-1, |level| level as c_int)
}

/// `id`: null or where the program expects the id.
fn get_thread_id(id: *mut u64) -> c_int {
    if !id.is_null() {
        // SAFETY: the caller's argument, where the function writes the id.
        unsafe { id.write(threads::thread_id().into()) };
    }
    0
}
