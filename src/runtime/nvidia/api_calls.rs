//! Calls of CUDA's runtime and driver APIs, which CUPTI reports to the subscriber when they begin and when they are over.

use super::{driver, registry};
use crate::gpu::observers::{self, ApiCall, ApiStream};
use cuda_abi::cupti::*;
use cuda_abi::functions;
use std::ffi::{CStr, c_uint, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

/// The API calls that are reported.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Reported {
    /// Calls that submit work, and calls of the functions in [`PROFILER`].
    Submitting = 1,
    All,
}

/// A [`Reported`]; 0: none.
static REPORTED: AtomicU8 = AtomicU8::new(0);

/// Sets which calls are reported from now on. Without a trace, none are.
pub fn set_reported(reported: Reported) {
    REPORTED.store(reported as u8, Ordering::Release);
}

/// Whether calls are reported.
#[inline]
pub fn is_reported() -> bool {
    REPORTED.load(Ordering::Acquire) != 0
}

/// The functions whose calls are observed in every trace.
pub fn submitting() -> impl Iterator<Item = (c_uint, c_uint)> {
    let all = [
        (CUPTI_CB_DOMAIN_RUNTIME_API, functions::RUNTIME),
        (CUPTI_CB_DOMAIN_DRIVER_API, functions::DRIVER),
    ];
    all.into_iter().flat_map(|(domain, functions)| {
        let submitting = functions
            .iter()
            .filter(|function| function.work != Work::Nothing);
        let numbers = submitting.flat_map(|function| [function.number, function.per_thread]);
        // 0 is the number of no function.
        let numbers = numbers.filter(|&number| number != 0);
        numbers.map(move |number| (domain, number))
    })
}

/// The functions with which a program starts and stops a tool.
pub const PROFILER: [(c_uint, c_uint); 4] = [
    (CUPTI_CB_DOMAIN_RUNTIME_API, runtime_cbid::cudaProfilerStart),
    (CUPTI_CB_DOMAIN_RUNTIME_API, runtime_cbid::cudaProfilerStop),
    (CUPTI_CB_DOMAIN_DRIVER_API, cbid::cuProfilerStart),
    (CUPTI_CB_DOMAIN_DRIVER_API, cbid::cuProfilerStop),
];

/// The number of functions in an API is smaller than this.
const MAX_NUMBER: usize = 1024;

/// Positions in a table, by the number of the function; [`u8::MAX`]: it is not in the table.
const fn positions(functions: &[Function]) -> [u8; MAX_NUMBER] {
    assert!(functions.len() < u8::MAX as usize);
    let mut positions = [u8::MAX; MAX_NUMBER];
    let mut n = 0;
    while n < functions.len() {
        positions[functions[n].number as usize] = n as u8;
        positions[functions[n].per_thread as usize] = n as u8;
        n += 1;
    }
    // The number of no function.
    positions[0] = u8::MAX;
    positions
}

static RUNTIME: [u8; MAX_NUMBER] = positions(functions::RUNTIME);
static DRIVER: [u8; MAX_NUMBER] = positions(functions::DRIVER);

/// A function, if it submits work or has a stream.
#[inline]
fn find(domain: c_uint, number: c_uint) -> Option<&'static Function> {
    let (functions, positions) = match domain {
        CUPTI_CB_DOMAIN_RUNTIME_API => (functions::RUNTIME, &RUNTIME),
        _ => (functions::DRIVER, &DRIVER),
    };
    functions.get(usize::from(*positions.get(number as usize)?))
}

/// Names of functions, without versions. A name is looked up once.
static NAMES: [[OnceLock<&'static str>; MAX_NUMBER]; 2] =
    [const { [const { OnceLock::new() }; MAX_NUMBER] }; 2];

/// # Safety
/// `data` is from a callback with this domain and number.
unsafe fn name(domain: c_uint, number: c_uint, data: &CUpti_CallbackData) -> &'static str {
    let read = || {
        // SAFETY: a string that stays valid, as the header says.
        let name = unsafe { CStr::from_ptr(data.functionName) };
        without_version(name.to_str().unwrap_or("unknown function"))
    };
    let names = &NAMES[usize::from(domain == CUPTI_CB_DOMAIN_RUNTIME_API)];
    match names.get(number as usize) {
        Some(name) => name.get_or_init(read),
        None => read(),
    }
}

/// Handles a callback about a call.
///
/// # Safety
/// `data` is from a callback with this domain and number.
pub unsafe fn handle(domain: c_uint, number: c_uint, data: &CUpti_CallbackData) {
    let Some(trace) = observers::trace() else {
        return;
    };
    let all = REPORTED.load(Ordering::Acquire) == Reported::All as u8;
    let function = find(domain, number);
    let submits = function.is_some_and(|function| function.work != Work::Nothing);
    let profiler = (domain, number);
    if data.callbackSite == CUPTI_API_ENTER
        && !submits
        && let Some(n) = PROFILER.iter().position(|&known| known == profiler)
    {
        // The runtime's function calls the driver's. The second event changes nothing.
        trace.profiler_switched(n % 2 == 0);
    }
    if !submits && !all {
        return;
    }
    if data.callbackSite == CUPTI_API_EXIT {
        let is_own = driver::is_own_call();
        // SAFETY: after the call, a pointer to its result. Functions that return no error code have none.
        let status = unsafe { data.functionReturnValue.cast::<i32>().as_ref() };
        trace.api_call_ended(is_own, status.copied().unwrap_or(0));
        return;
    }
    let stream = match function {
        // SAFETY: the arguments of this function.
        Some(function) => unsafe { stream(function, number, data.functionParams) },
        None => ApiStream::Unknown,
    };
    trace.api_call_began(&ApiCall {
        // SAFETY: the caller's promise.
        function: unsafe { name(domain, number, data) },
        correlation: data.correlationId,
        submits,
        // A kernel that is captured becomes a node of a graph.
        submits_once: function.is_some_and(|function| function.work == Work::Kernel)
            && !registry::is_capturing(),
        stream,
        is_own: driver::is_own_call(),
    });
}

/// # Safety
/// These are the arguments of the function with this number.
unsafe fn stream(function: &Function, number: c_uint, arguments: *const c_void) -> ApiStream {
    /// # Safety
    /// There is a handle.
    unsafe fn at(start: *const c_void, offset: usize) -> u64 {
        // SAFETY: the caller's promise.
        unsafe { start.byte_add(offset).cast::<u64>().read_unaligned() }
    }
    // SAFETY: the header's layout, and the caller's promise.
    let handle = unsafe {
        match function.stream {
            StreamArgument::Unknown => return ApiStream::Unknown,
            _ if arguments.is_null() => return ApiStream::Unknown,
            StreamArgument::Default => 0,
            StreamArgument::At(offset) => at(arguments, offset),
            StreamArgument::InConfig(offset) => {
                let config = arguments.cast::<*const c_void>().read_unaligned();
                if config.is_null() {
                    return ApiStream::Unknown;
                } else {
                    at(config, offset)
                }
            }
        }
    };
    if number == function.per_thread {
        ApiStream::PerThreadHandle(handle)
    } else {
        ApiStream::Handle(handle)
    }
}

/// A name without the version that the runtime's functions have in CUPTI, for example `_v7000`.
fn without_version(name: &'static str) -> &'static str {
    match name.rsplit_once("_v") {
        Some((name, version))
            if version.len() >= 4 && version.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            name
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_their_numbers() {
        let launch = find(CUPTI_CB_DOMAIN_RUNTIME_API, 211).expect("cudaLaunchKernel");
        assert_eq!(launch.work, Work::Kernel);
        assert_eq!(launch.stream, StreamArgument::At(48));
        assert!(
            find(CUPTI_CB_DOMAIN_DRIVER_API, 307).is_some_and(|launch| launch.work == Work::Kernel)
        );
        // cudaMalloc
        assert_eq!(find(CUPTI_CB_DOMAIN_RUNTIME_API, 20), None);
        assert_eq!(find(CUPTI_CB_DOMAIN_RUNTIME_API, 0), None);
        // cuMemcpyWithAttributesAsync and cudaMemcpy3DWithAttributesAsync, of CUDA 13.2.
        for (domain, number, stream) in [
            (CUPTI_CB_DOMAIN_DRIVER_API, 837, 32),
            (CUPTI_CB_DOMAIN_RUNTIME_API, 556, 16),
        ] {
            let copy = find(domain, number).expect("a copy");
            assert_eq!(copy.work, Work::Any);
            assert_eq!(copy.stream, StreamArgument::At(stream));
        }
        for functions in [functions::RUNTIME, functions::DRIVER] {
            assert!(functions.is_sorted_by_key(|function| function.number));
        }
    }

    #[test]
    fn the_stream_is_in_the_arguments() {
        let mut arguments = [0u64; 8];
        arguments[6] = 0x10;
        let named = |domain, number| {
            let function = find(domain, number).expect("a function");
            // SAFETY: as many bytes as the functions below have arguments.
            unsafe { stream(function, number, arguments.as_ptr().cast()) }
        };
        let runtime = CUPTI_CB_DOMAIN_RUNTIME_API;
        assert_eq!(named(runtime, 211), ApiStream::Handle(0x10));
        assert_eq!(named(runtime, 214), ApiStream::PerThreadHandle(0x10));
        // cudaMemcpy, cudaLaunchCooperativeKernelMultiDevice
        assert_eq!(named(runtime, 31), ApiStream::Handle(0));
        assert_eq!(named(runtime, 272), ApiStream::Unknown);
        // cuLaunchKernelEx
        let config = [0u64, 0, 0, 0, 0x20];
        let arguments = [config.as_ptr()];
        let function = find(CUPTI_CB_DOMAIN_DRIVER_API, 652).expect("a function");
        // SAFETY: the arguments of the function.
        let found = unsafe { stream(function, 652, arguments.as_ptr().cast()) };
        assert_eq!(found, ApiStream::Handle(0x20));
    }

    #[test]
    fn names_have_no_version_of_cupti() {
        assert_eq!(
            without_version("cudaLaunchKernel_v7000"),
            "cudaLaunchKernel"
        );
        assert_eq!(
            without_version("cudaLaunchKernel_ptsz_v7000"),
            "cudaLaunchKernel_ptsz"
        );
        assert_eq!(without_version("cuMemcpyHtoD_v2"), "cuMemcpyHtoD_v2");
        assert_eq!(without_version("cuLaunchKernel"), "cuLaunchKernel");
    }
}
