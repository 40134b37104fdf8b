//! Functions of HSA that devprof interposes: the archive in a program that is linked with it, and the shared library if it is
//! preloaded. HIP's calls reach them instead of ROCr's functions, so devprof observes
//! executables and queues even if ROCr does not load it as a tool.
//!
//! They have HSA's names in the builds of tools/build-runtime (the feature `interpose`). In other builds, such as tests
//! that provide their own HSA runtime, they have other names.

use crate::amd::api;
use crate::amd::hip::next_function;
use crate::amd::observed_calls::{self, observed_functions};
use crate::amd::queue_request::{QueueRequest, queue_create_function};
use crate::gpu::observers::{self, Source};
use crate::sys::loader::c_name;
use hsa_abi::{ExecutableHandle, Queue, Status, function};
use std::ffi::{CStr, c_char};

const SOURCE: Source = Source::Interposed;

/// ROCr's function of this name. `F`: its type, a function pointer.
///
/// # Safety
/// `F` is the type of the function in `hsa/hsa.h`.
unsafe fn next<F: Copy>(name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<usize>()) };
    let function = next_function(name, &api::LIBRARIES)?;
    // SAFETY: the address of a function; the caller's promise about its type.
    Some(unsafe { std::mem::transmute_copy::<_, F>(&function) })
}

/// `hsa_init`.
///
/// # Safety
/// As in `hsa/hsa.h`.
#[cfg_attr(feature = "interpose", unsafe(export_name = "hsa_init"))]
#[cfg_attr(not(feature = "interpose"), unsafe(no_mangle))]
unsafe extern "C" fn devprof_hsa_init() -> Status {
    // SAFETY: the type of this function in `hsa/hsa.h`.
    let Some(init) = (unsafe { next::<function::hsa_init>(c"hsa_init") }) else {
        return Status::ERROR;
    };
    let drain = observers::drain();
    let was_reported = drain.is_some_and(|drain| drain.initializing());
    // SAFETY: a function without arguments.
    let status = unsafe { init() };
    if let Some(drain) = drain {
        drain.initialized(was_reported, status == Status::SUCCESS);
    }
    status
}

macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),*) = $observed:ident;)*) => {$(
        /// # Safety
        /// As in `hsa/hsa.h`.
        #[cfg_attr(feature = "interpose", unsafe(export_name = stringify!($name)))]
        #[cfg_attr(not(feature = "interpose"), unsafe(export_name = concat!("devprof_", stringify!($name))))]
        unsafe extern "C" fn $name($($argument: $type),*) -> Status {
            // SAFETY: the type of this function in `hsa/hsa.h`.
            let real = unsafe { next::<function::$name>(c_name(concat!(stringify!($name), "\0"))) };
            match real {
                // SAFETY: the program's arguments, to ROCr's function.
                Some(real) => unsafe { observed_calls::$observed(SOURCE, real, $($argument),*) },
                None => Status::NOT_INITIALIZED,
            }
        }
    )*};
}

observed_functions!(functions);

queue_create_function!(
    /// `hsa_queue_create`.
    ///
    /// # Safety
    /// As in `hsa/hsa.h`.
    #[cfg_attr(feature = "interpose", unsafe(export_name = "hsa_queue_create"))]
    #[cfg_attr(not(feature = "interpose"), unsafe(no_mangle))]
    fn devprof_hsa_queue_create = create_queue
);

/// # Safety
/// As for `hsa_queue_create`.
unsafe fn create_queue(request: &QueueRequest) -> Result<*mut Queue, Status> {
    // SAFETY: the type of this function in `hsa/hsa.h`.
    let create = unsafe { next::<function::hsa_queue_create>(c"hsa_queue_create") };
    let create = create.ok_or(Status::NOT_INITIALIZED)?;
    // SAFETY: the caller's promise.
    unsafe { observed_calls::create_queue(SOURCE, create, request) }
}
