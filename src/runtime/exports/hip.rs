//! The functions of HIP that the shared library defines under HIP's names ([`hip_functions`]). If the library is loaded
//! before HIP, the program calls them instead of HIP's. This is FFI to HIP: the signatures are those of HIP 7.2.
//! Enumerations are 32 bits wide; all pointers have the type `P`.
//!
//! Each exported function jumps to its target. The first call sets the target: to HIP's function if this run does not
//! record the function, so that a call costs only the jump; otherwise to a function that records the call and calls
//! HIP's.
//!
//! They have HIP's names only in the shared library (the feature `shared`). The archive must not define them, because
//! its weak references to HIP's functions would find them.

use super::{Address, P};
use crate::amd::hip;
use crate::support::panic_guard::{Cost, guarded};
use crate::support::settings::settings;
use crate::sys::loader::{self, c_name};
use crate::trace::calls::hip_functions::hip_functions;
use crate::trace::calls::{self, Call};
use crate::trace::streams::{self, NamedStream};
use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

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

/// What a function of HIP returns.
trait Returned {
    /// A function that returns this if HIP is not loaded.
    const WITHOUT_HIP: Address;
    /// The recorded status.
    fn status(&self) -> i32 {
        0
    }
}

impl Returned for Error {
    const WITHOUT_HIP: Address = {
        /// `hipErrorNotInitialized`.
        extern "C" fn without_hip() -> Error {
            Error(3)
        }
        Address(without_hip as *const ())
    };
    fn status(&self) -> i32 {
        self.0
    }
}

impl Returned for Number {
    const WITHOUT_HIP: Address = {
        extern "C" fn without_hip() -> Number {
            Number(-1)
        }
        Address(without_hip as *const ())
    };
}

impl Returned for P {
    const WITHOUT_HIP: Address = {
        extern "C" fn without_hip() -> P {
            std::ptr::null_mut()
        }
        Address(without_hip as *const ())
    };
}

impl Returned for ChannelFormatDesc {
    const WITHOUT_HIP: Address = {
        extern "C" fn without_hip() -> ChannelFormatDesc {
            ChannelFormatDesc {
                bits: [0; 4],
                kind: 0,
            }
        }
        Address(without_hip as *const ())
    };
}

/// A function that is exported under a name of HIP's.
#[repr(C)]
pub struct Function {
    /// Where the exported function jumps to. The first field: see `exported` and [`first`].
    target: AtomicPtr<()>,
    /// HIP's function; null before the first call.
    real: AtomicPtr<()>,
    recorded: Address,
    exported: Address,
    without_hip: Address,
    symbol: &'static CStr,
    /// The name in the trace.
    name: &'static str,
    /// Whether it launches, copies or fills.
    is_work: bool,
    /// Whether devprof does something after a call, recorded or not.
    is_observed: bool,
    /// Whether this run records it.
    is_recorded: AtomicBool,
}

/// Whether this process is traced.
pub fn is_tracing() -> bool {
    guarded(Cost::Dispatches, false, || settings().is_traced())
}

/// The function with this symbol.
pub fn find(symbol: &CStr) -> Option<&'static Function> {
    let index = FUNCTIONS.binary_search_by(|function| function.symbol.cmp(symbol));
    Some(&FUNCTIONS[index.ok()?])
}

impl Function {
    /// Finds HIP's function and sets the target. Returns the target; `None`: HIP is not loaded, and nothing was set.
    #[cold]
    fn resolve(&self) -> Option<*mut ()> {
        let function = guarded(Cost::Dispatches, None, || hip::function(self.symbol))?;
        let is_tracing = is_tracing();
        let is_recorded = is_tracing && (self.is_work || settings().tracing.api);
        self.is_recorded.store(is_recorded, Ordering::Relaxed);
        self.real.store(function.cast(), Ordering::Relaxed);
        let target = if is_recorded || is_tracing && self.is_observed {
            self.recorded.0.cast_mut()
        } else {
            function.cast()
        };
        // Release: a thread that finds this target finds the other fields, too.
        self.target.store(target, Ordering::Release);
        Some(target)
    }

    /// Prepares [`Function::replace`], which must not use the dynamic loader. Returns whether HIP is loaded.
    pub fn prepare(&self) -> bool {
        !self.real.load(Ordering::Relaxed).is_null() || self.resolve().is_some()
    }

    /// The function that a program gets instead of `found`: the exported one if `found` is HIP's function and this run
    /// records or observes it, otherwise `found`.
    pub fn replace(&self, found: P) -> P {
        let target = self.target.load(Ordering::Acquire);
        let is_hips = self.real.load(Ordering::Relaxed) == found.cast();
        if is_hips && target == self.recorded.0.cast_mut() {
            self.exported.0.cast_mut().cast()
        } else {
            found
        }
    }

    #[inline(never)]
    fn begin(&self, stream: NamedStream) -> Option<Call> {
        if !self.is_recorded.load(Ordering::Relaxed) {
            return None;
        }
        calls::begin(self.name, stream)
    }
}

/// Sets the target of a function that is called for the first time. Returns the address to jump to.
extern "C" fn resolve(function: &'static Function) -> *const () {
    match function.resolve() {
        Some(target) => target,
        None => function.without_hip.0,
    }
}

/// The first target of all functions. The exported function has put the address of its [`Function`] into `r11`. All
/// registers that can contain arguments are preserved.
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
        "sub rsp, 136",
        "movups [rsp], xmm0",
        "movups [rsp + 16], xmm1",
        "movups [rsp + 32], xmm2",
        "movups [rsp + 48], xmm3",
        "movups [rsp + 64], xmm4",
        "movups [rsp + 80], xmm5",
        "movups [rsp + 96], xmm6",
        "movups [rsp + 112], xmm7",
        "mov rdi, r11",
        "call {resolve}",
        "movups xmm0, [rsp]",
        "movups xmm1, [rsp + 16]",
        "movups xmm2, [rsp + 32]",
        "movups xmm3, [rsp + 48]",
        "movups xmm4, [rsp + 64]",
        "movups xmm5, [rsp + 80]",
        "movups xmm6, [rsp + 96]",
        "movups xmm7, [rsp + 112]",
        "add rsp, 136",
        "pop r9",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        resolve = sym resolve,
    )
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
        function.prepare().then(|| function.replace(address))
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
        /// Indices in [`FUNCTIONS`].
        #[expect(non_camel_case_types)]
        enum Index {
            $($name,)*
        }

        /// Sorted by symbol.
        static FUNCTIONS: [Function; [$(stringify!($name)),*].len()] = [$(
            Function {
                target: AtomicPtr::new(first as *mut ()),
                real: AtomicPtr::new(std::ptr::null_mut()),
                recorded: Address($name::recorded as *const ()),
                exported: Address($name::exported as *const ()),
                without_hip: <returned!($($returned)?)>::WITHOUT_HIP,
                symbol: $name::SYMBOL,
                name: or!(stringify!($name); $($called)?),
                is_work: or!(false; $(stringify!($work).len() > 0)?),
                is_observed: or!(false; $(stringify!($after).len() > 0)?),
                is_recorded: AtomicBool::new(false),
            },
        )*];

        $(
            #[expect(non_snake_case)]
            mod $name {
                use super::*;

                type Signature = unsafe extern "C-unwind" fn($($type),*) -> returned!($($returned)?);

                pub const SYMBOL: &CStr = c_name(concat!(or!(stringify!($name); $($symbol)?), "\0"));

                /// # Safety
                /// The requirements are those of HIP's function.
                #[unsafe(naked)]
                #[cfg_attr(feature = "shared", unsafe(export_name = or!(stringify!($name); $($symbol)?)))]
                #[cfg_attr(not(feature = "shared"), unsafe(export_name = concat!("devprof_", stringify!($name))))]
                pub unsafe extern "C-unwind" fn exported($(_: $type),*) -> returned!($($returned)?) {
                    std::arch::naked_asm!(
                        "lea r11, [rip + {functions} + {offset}]",
                        "jmp qword ptr [r11]",
                        functions = sym FUNCTIONS,
                        offset = const Index::$name as usize * size_of::<Function>(),
                    )
                }

                /// # Safety
                /// The requirements are those of HIP's function.
                pub unsafe extern "C-unwind" fn recorded($($arg: $type),*) -> returned!($($returned)?) {
                    let function = &FUNCTIONS[Index::$name as usize];
                    // SAFETY: HIP's function of this name, stored in `real` before `recorded` became the target.
                    let real = unsafe { std::mem::transmute::<*mut (), Signature>(function.real.load(Ordering::Acquire)) };
                    let stream = or!(NamedStream::None; $($stream)? $(
                        // SAFETY: HIP's function reads it, too.
                        unsafe { of_config($config) }
                    )?);
                    let call = function.begin(stream);
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
