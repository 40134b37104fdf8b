//! The functions of HIP that the shared library defines under HIP's names ([`hip_functions`]). If the library is loaded
//! before HIP, the program calls them instead of HIP's. This is FFI to HIP: the signatures are from HIP 7.2.
//! Enumerations are 32 bits wide; all pointers have the type `P`.
//!
//! The first call sets the target: to HIP's function if this run does not record the function; otherwise to a function that
//! records the call and calls HIP's.
//!
//! They have HIP's names only in the shared library (the feature `shared`). The archive must not define them, because
//! its weak references to HIP's functions would find them.

use super::replaced::{Calls, P, Replaced, replaced};
use crate::amd::hip;
use crate::support::panic_guard::{Cost, guarded};
use crate::support::settings::settings;
use crate::sys::loader;
use crate::trace::calls::hip_functions::hip_functions;
use crate::trace::calls::{self, Call};
use crate::trace::streams::{self, NamedStream};
use std::ffi::CStr;
use std::sync::atomic::Ordering;

/// `dim3`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Dim3 {
    x: u32,
    y: u32,
    z: u32,
}

/// `hipPitchedPtr`.
#[derive(Clone, Copy)]
#[repr(C)]
struct PitchedPtr {
    ptr: P,
    pitch: usize,
    xsize: usize,
    ysize: usize,
}

/// `hipExtent`.
#[derive(Clone, Copy)]
#[repr(C)]
struct Extent {
    width: usize,
    height: usize,
    depth: usize,
}

/// `hipMemLocation`.
#[derive(Clone, Copy)]
#[repr(C)]
struct MemLocation {
    kind: u32,
    id: i32,
}

/// `hipIpcMemHandle_t` and `hipIpcEventHandle_t`.
#[derive(Clone, Copy)]
#[repr(C)]
struct IpcHandle {
    reserved: [u8; 64],
}

/// `hipChannelFormatDesc`.
#[derive(Clone, Copy)]
#[repr(C)]
struct ChannelFormatDesc {
    bits: [i32; 4],
    kind: u32,
}

/// `hipError_t`.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Error(i32);

/// A number that is not an error code.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct Number(i32);

/// The result of a function of HIP.
trait Returned: Sized {
    /// If HIP is not loaded.
    const WITHOUT_HIP: Self;
    /// The recorded status.
    fn status(&self) -> i32 {
        0
    }
}

extern "C" fn without_hip<R: Returned>() -> R {
    R::WITHOUT_HIP
}

impl Returned for Error {
    /// `hipErrorNotInitialized`.
    const WITHOUT_HIP: Error = Error(3);
    fn status(&self) -> i32 {
        self.0
    }
}

impl Returned for Number {
    const WITHOUT_HIP: Number = Number(-1);
}

impl Returned for P {
    const WITHOUT_HIP: P = std::ptr::null_mut();
}

impl Returned for ChannelFormatDesc {
    const WITHOUT_HIP: ChannelFormatDesc = ChannelFormatDesc {
        bits: [0; 4],
        kind: 0,
    };
}

/// The function with this symbol.
pub fn find(symbol: &CStr) -> Option<&'static Replaced> {
    let index = FUNCTIONS.binary_search_by(|function| function.symbol.cmp(symbol));
    Some(&FUNCTIONS[index.ok()?])
}

/// Finds HIP's function. If HIP is not loaded, the next call searches again.
extern "C" fn resolve(function: &'static Replaced) -> *const () {
    let without = function.calls.without;
    guarded(Cost::Dispatches, without, || {
        let found = hip::next_function(function.symbol, &hip::LIBRARIES);
        found.map_or(without, |found| function.set(found))
    })
}

/// Begins a call. `is_work`: the function launches, copies or fills. Other functions are recorded only on request, but may be
/// observed in any case.
#[inline(never)]
fn begin(name: &'static str, is_work: bool, stream: NamedStream) -> Option<Call> {
    if !is_work && !settings().tracing.api {
        return None;
    }
    calls::begin(name, stream)
}

/// Ends a call.
#[inline(never)]
fn end(call: Option<Call>, status: i32) {
    if let Some(mut call) = call {
        call.status = status;
    }
}

const NULL: NamedStream = NamedStream::Null;
const PER_THREAD: NamedStream = NamedStream::PerThread;

fn of(stream: P) -> NamedStream {
    NamedStream::of(stream)
}

fn of_spt(stream: P) -> NamedStream {
    NamedStream::of_spt(stream)
}

/// # Safety
/// `config` is NULL or points to a `HIP_LAUNCH_CONFIG` or `hipLaunchConfig_t`.
unsafe fn of_config(config: P) -> NamedStream {
    /// Offset of the stream in both, in bytes.
    const STREAM: usize = 32;
    if config.is_null() {
        return NamedStream::None;
    }
    // SAFETY: the caller's promise.
    of(unsafe { *config.byte_add(STREAM).cast::<P>() })
}

/// HIP has created a stream.
///
/// # Safety
/// `stream` points to its handle.
unsafe fn created(stream: P) {
    // SAFETY: the caller's promise.
    let handle = unsafe { *stream.cast::<P>() };
    guarded(Cost::Dispatches, (), || streams::created(handle as u64));
}

/// HIP has returned the address of a function, perhaps of its own: the program gets the exported one.
///
/// # Safety
/// `found` points to the address.
unsafe fn replace(found: P) {
    let found = found.cast::<P>();
    // SAFETY: the caller's promise.
    let address = unsafe { *found };
    let replacement = guarded(Cost::Dispatches, None, || {
        let function = find(&loader::symbol_at(address)?)?;
        function.prepare();
        Some(function.replace(address))
    });
    if let Some(replacement) = replacement {
        // SAFETY: the caller's promise.
        unsafe { *found = replacement };
    }
}

macro_rules! or {
    ($default:expr;) => {
        $default
    };
    ($default:expr; $value:expr) => {
        $value
    };
}

/// The type that a function returns.
macro_rules! returned {
    () => {
        Error
    };
    ($type:ident) => {
        $type
    };
}

macro_rules! functions {
    ($(
        $name:ident $(= $symbol:literal is $called:literal)? ($($arg:ident: $type:ty),*) $(-> $returned:ident)?
        $([$work:ident])? $(with $config:ident)? $(on $stream:expr)? $(, then $after:expr)?;
    )*) => {
        // Sorted by symbol.
        replaced! { #[expect(non_snake_case)] FUNCTIONS by resolve: $(
            $name = or!(stringify!($name); $($symbol)?), Calls {
                recorded: $name::recorded as *const (),
                without: without_hip::<returned!($($returned)?)> as *const (),
                are_recorded: |_tracing| or!(_tracing.api; $(stringify!($work).len() > 0)?)
                    || or!(false; $(stringify!($after).len() > 0)?),
            };
        )*}

        $(
            #[expect(non_snake_case)]
            mod $name {
                use super::*;

                type Signature = unsafe extern "C-unwind" fn($($type),*) -> returned!($($returned)?);

                /// # Safety
                /// As for HIP's function.
                pub unsafe extern "C-unwind" fn recorded($($arg: $type),*) -> returned!($($returned)?) {
                    let function = &FUNCTIONS[Index::$name as usize];
                    // SAFETY: HIP's function of this name, stored in `real` before `recorded` became the target.
                    let real = unsafe { std::mem::transmute::<*mut (), Signature>(function.real.load(Ordering::Acquire)) };
                    let stream = or!(NamedStream::None; $($stream)? $(
                        // SAFETY: HIP's function reads it, too.
                        unsafe { of_config($config) }
                    )?);
                    let name = or!(stringify!($name); $($called)?);
                    let call = begin(name, or!(false; $(stringify!($work).len() > 0)?), stream);
                    // SAFETY: the caller fulfills the requirements of HIP's function, and these are its arguments.
                    let result = unsafe { real($($arg),*) };
                    $(
                        if result.status() == 0 {
                            // SAFETY: HIP's function has succeeded with these arguments.
                            unsafe { $after };
                        }
                    )?
                    end(call, result.status());
                    result
                }
            }
        )*
    };
}

hip_functions!(functions);
