//! The functions that programs, compiler-rt, ROCr, the CUDA driver and NVTX call, and the constructor.

use super::exec;
use crate::process::leader;
use crate::process::request::Request;
use crate::process::{cuda, exit, startup, tool};
use crate::support::features::HAS_TRACE;
use crate::trace::markers::nvtx;
use cuda_abi::nvtx::NvtxGetExportTableFunc_t;
use hsa_abi::ApiPrefix;
use std::ffi::{CStr, c_char, c_int, c_void};

/// Collects the counters of all loaded code objects and writes their files. LLVM's host runtime calls it when it writes
/// the host profile (compiler-rt, InstrProfilingFile.c); a program may call it at any time. Returns 0, or -1 if
/// something was lost, which is reported on stderr.
#[unsafe(no_mangle)]
pub extern "C" fn __llvm_profile_hip_collect_device_data() -> c_int {
    leader::status(leader::request(Request::Collect {}))
}

/// Waits for running kernels, resets the counters of all loaded code objects, and discards earlier counts. Returns 0,
/// or -1 if counters could not be reset, which is reported on stderr.
#[unsafe(no_mangle)]
pub extern "C" fn devprof_reset_counters() -> c_int {
    leader::status(leader::request(Request::Reset {}))
}

/// The test that is running ends, and another one begins. Returns 0, or -1 if something was lost, which is reported on stderr.
///
/// # Safety
/// `name` is a C string, or null if no test begins.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn devprof_test(name: *const c_char) -> c_int {
    let name = if name.is_null() {
        c""
    } else {
        // SAFETY: the caller's promise.
        unsafe { CStr::from_ptr(name) }
    };
    let bytes = name.to_bytes();
    leader::status(leader::request(Request::Test {
        name: bytes.as_ptr() as u64,
        size: bytes.len() as u64,
    }))
}

/// Starts the recording of the trace. Returns 0, or -1 if another version of devprof may have the trace.
#[unsafe(no_mangle)]
pub extern "C" fn devprof_trace_start() -> c_int {
    leader::status(leader::request_to_trace(Request::SetRecording { on: true }))
}

/// Stops the recording of the trace. Returns 0, or -1 if another version of devprof may have the trace.
#[unsafe(no_mangle)]
pub extern "C" fn devprof_trace_stop() -> c_int {
    leader::status(leader::request_to_trace(Request::SetRecording {
        on: false,
    }))
}

/// Waits until everything that was submitted before is in the trace. Returns 0, or -1 if something is missing, which is
/// reported on stderr.
#[unsafe(no_mangle)]
pub extern "C" fn devprof_trace_flush() -> c_int {
    leader::status(leader::request_to_trace(Request::FlushTrace {}))
}

// LLVM's function, if the program is linked with --wrap=__llvm_profile_reset_counters; otherwise null. In assembly,
// because Rust cannot declare weak references.
std::arch::global_asm!(
    ".pushsection .data.rel.ro.devprof_real_reset,\"aw\"",
    ".balign 8",
    ".globl devprof_real_reset",
    ".hidden devprof_real_reset",
    "devprof_real_reset:",
    ".weak __real___llvm_profile_reset_counters",
    ".quad __real___llvm_profile_reset_counters",
    ".popsection",
);

unsafe extern "C" {
    static devprof_real_reset: Option<unsafe extern "C" fn()>;
}

/// Resets the host's and the devices' counters. In a program that is linked with the archive and
/// `-Wl,--wrap=__llvm_profile_reset_counters`, this is `__llvm_profile_reset_counters`.
#[unsafe(no_mangle)]
pub extern "C" fn __wrap___llvm_profile_reset_counters() {
    // SAFETY: written only by the static and the dynamic linker.
    if let Some(reset) = unsafe { devprof_real_reset } {
        // SAFETY: the function that the program calls (compiler-rt, InstrProfiling.h).
        unsafe { reset() };
    }
    devprof_reset_counters();
}

/// Functions that objects call which were compiled for other device runtimes. They do nothing: devprof finds code objects
/// without registration.
macro_rules! ignored {
    ($($name:ident($($type:ty),*);)*) => {$(
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($(_: $type),*) {}
    )*};
}

ignored! {
    __llvm_profile_offload_register_shadow_variable(*mut c_void);
    __llvm_profile_offload_register_section_shadow_variable(*mut c_void);
    __llvm_profile_offload_register_dynamic_module(c_int, *mut *mut c_void, *const c_void);
    __llvm_profile_offload_unregister_dynamic_module(*mut c_void);
}

/// ROCr calls this when it loads the shared library as a tool.
///
/// # Safety
/// `table` is ROCr's `HsaApiTable`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn OnLoad(
    table: *mut ApiPrefix,
    _version: u64,
    _failed_tools: u64,
    _failed_tool_names: *const *const c_char,
) -> bool {
    // SAFETY: the caller's promise.
    unsafe { tool::on_load(table) };
    true
}

/// ROCr calls this when HSA is shut down.
#[unsafe(no_mangle)]
pub extern "C" fn OnUnload() {
    tool::on_unload();
}

/// The CUDA driver calls this when it is initialized, if CUDA_INJECTION64_PATH names the shared library. Returns 1:
/// success.
#[unsafe(no_mangle)]
pub extern "C" fn InitializeInjection() -> c_int {
    leader::request(Request::CudaStarting {});
    cuda::initializing();
    1
}

/// NVTX calls this in each library that uses it. Returns 1 if devprof records markers; otherwise NVTX calls no tool.
///
/// # Safety
/// `tables` is NVTX's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn InitializeInjectionNvtx2(
    tables: Option<NvtxGetExportTableFunc_t>,
) -> c_int {
    // SAFETY: the caller's promise.
    c_int::from(unsafe { nvtx::initialize(tables) })
}

/// Runs when the program or library that contains devprof is loaded.
extern "C" fn constructor() {
    let is_enabled = startup::start(
        OnLoad as *const c_void,
        InitializeInjection as *const c_void,
    );
    if HAS_TRACE && is_enabled {
        exec::find_next();
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = constructor;

#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = exit::after_exit;
