//! What the driver loads and unloads, from calls of its functions. CUPTI ([`super::subscriber`]) or the functions that the
//! shared library wraps ([`super::wrapped`]) report these calls. Here the registry is filled, and events are reported before
//! and after modules are unloaded.
//!
//! The driver holds no locks during these reports, so a drain may run.

use super::code::{Code, Counting, Damage};
use super::registry::{self, Module, registry, take_loaded, take_of_thread};
use super::{driver, handles, image, prepare, primary, wait, without_cupti};
use crate::gpu::observers::{self, Source};
use crate::gpu::runtime::ExecutableId;
use crate::sys::threads;
use cuda_abi::cupti::*;
use cuda_abi::driver::{CUcontext, CUlibrary, CUmodule, CUresult};
use std::cell::Cell;
use std::ffi::{CStr, OsStr, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The calls to observe: their numbers in CUPTI's callbacks.
pub const CALLS: &[c_uint] = &[
    cbid::cuCtxCreate,
    cbid::cuCtxCreate_v2,
    cbid::cuCtxCreate_v3,
    cbid::cuCtxCreate_v4,
    cbid::cuCtxDestroy,
    cbid::cuCtxDestroy_v2,
    cbid::cuDevicePrimaryCtxRetain,
    cbid::cuDevicePrimaryCtxRelease,
    cbid::cuDevicePrimaryCtxRelease_v2,
    cbid::cuDevicePrimaryCtxReset,
    cbid::cuDevicePrimaryCtxReset_v2,
    cbid::cuGreenCtxCreate,
    cbid::cuGreenCtxDestroy,
    cbid::cuCtxFromGreenCtx,
    cbid::cuModuleLoad,
    cbid::cuModuleLoadData,
    cbid::cuModuleLoadDataEx,
    cbid::cuModuleLoadFatBinary,
    cbid::cuModuleUnload,
    cbid::cuLibraryLoadData,
    cbid::cuLibraryLoadFromFile,
    cbid::cuLibraryUnload,
    cbid::cuStreamBeginCapture,
    cbid::cuStreamBeginCapture_ptsz,
    cbid::cuStreamBeginCapture_v2,
    cbid::cuStreamBeginCapture_v2_ptsz,
    cbid::cuStreamBeginCaptureToGraph,
    cbid::cuStreamBeginCaptureToGraph_ptsz,
    cbid::cuStreamBeginRecaptureToGraph,
    cbid::cuStreamBeginRecaptureToGraph_ptsz,
    cbid::cuStreamEndCapture,
    cbid::cuStreamEndCapture_ptsz,
    cbid::cuStreamDestroy,
    cbid::cuStreamDestroy_v2,
];

thread_local! {
    /// The thread is handling a report of a call, so a call from there is devprof's own.
    static IS_OWN: Cell<bool> = const { Cell::new(false) };
}

/// Whether a function creates a context.
fn creates(id: c_uint) -> bool {
    matches!(
        id,
        cbid::cuCtxCreate
            | cbid::cuCtxCreate_v2
            | cbid::cuCtxCreate_v3
            | cbid::cuCtxCreate_v4
            | cbid::cuDevicePrimaryCtxRetain
    )
}

/// Whether a function loads code whose kernels can only be launched when the call is over. A new context may get that of all
/// libraries (CUDA_MODULE_LOADING=EAGER).
fn loads(id: c_uint) -> bool {
    creates(id)
        || matches!(
            id,
            cbid::cuModuleLoad
                | cbid::cuModuleLoadData
                | cbid::cuModuleLoadDataEx
                | cbid::cuModuleLoadFatBinary
                | cbid::cuLibraryLoadData
                | cbid::cuLibraryLoadFromFile
        )
}

/// A module was loaded. To be called during the call that loads it.
pub fn loaded(context: CUcontext, id: u32, cubin: &[u8]) {
    let mut registry = registry();
    let n = registry.next();
    match image::read(cubin, registry::base(n)) {
        Ok(None) => {}
        Ok(Some(image)) => {
            let executable = ExecutableId::Cuda(n);
            registry.context_mut(context);
            registry.modules.push(Module {
                executable,
                id,
                is_loading: registry::is_loading(),
                context,
                handle: None,
                library: None,
                may_be_unused: false,
                image: image.into(),
                located: None,
                copies: None,
                is_prepared: !registry::is_loading(),
            });
            drop(registry);
            registry::add_loaded(executable);
            if let Some(drain) = observers::drain() {
                drain.code_loaded();
            }
        }
        Err(damage) => registry.damaged.push(format!(
            "lost the counters of CUDA module {id}, {} bytes: {damage}",
            cubin.len()
        )),
    }
}

/// A call begins, or is over. Calls from devprof's own work are left out.
///
/// # Safety
/// `data` describes a call of the function with this number, one of [`CALLS`].
pub unsafe fn report_call(id: c_uint, data: &CUpti_CallbackData) {
    if !IS_OWN.get() {
        IS_OWN.set(true);
        // SAFETY: the caller's promise.
        unsafe { call(id, data) };
        IS_OWN.set(false);
    }
}

/// # Safety
/// `data` describes a call of this function.
unsafe fn call(id: c_uint, data: &CUpti_CallbackData) {
    let is_over = data.callbackSite == CUPTI_API_EXIT;
    let mut loaded = Vec::new();
    if !is_over || loads(id) {
        loaded = take_loaded();
    }
    if loads(id) {
        registry::set_loading(!is_over);
    }
    // SAFETY: after the call, a pointer to its result.
    let is_success = is_over
        && unsafe { data.functionReturnValue.cast::<CUresult>().as_ref() }
            .is_some_and(|result| *result == CUresult::SUCCESS);
    let parameters = data.functionParams;
    // SAFETY: the caller's promise.
    let primary = unsafe { observe_primary(id, is_over, is_success, parameters) };
    if primary.is_none() && !is_over && releases(id) {
        return;
    }
    // SAFETY: each function's arguments, of the type in the header; output arguments are valid when the call is over and
    // has succeeded.
    unsafe {
        match id {
            cbid::cuModuleLoad
            | cbid::cuModuleLoadData
            | cbid::cuModuleLoadDataEx
            | cbid::cuModuleLoadFatBinary
                if is_success =>
            {
                let parameters = &*parameters.cast::<cuModuleLoad_params>();
                module_loaded(*parameters.module, &loaded);
            }
            cbid::cuLibraryLoadData | cbid::cuLibraryLoadFromFile if is_success => {
                let parameters = &*parameters.cast::<cuLibraryLoadData_params>();
                let code = match id {
                    cbid::cuLibraryLoadData => Code::read_memory(parameters.code),
                    _ => {
                        let path = CStr::from_ptr(parameters.code.cast());
                        Code::read_file(Path::new(OsStr::from_bytes(path.to_bytes())))
                    }
                };
                library_loaded(*parameters.library, code);
            }
            _ if creates(id) && is_success && without_cupti::is_active() => {
                let parameters = &*parameters.cast::<cuCtxCreate_params>();
                without_cupti::context_created(*parameters.pctx);
            }
            cbid::cuStreamBeginCapture
            | cbid::cuStreamBeginCapture_ptsz
            | cbid::cuStreamBeginCapture_v2
            | cbid::cuStreamBeginCapture_v2_ptsz
            | cbid::cuStreamBeginCaptureToGraph
            | cbid::cuStreamBeginCaptureToGraph_ptsz
            | cbid::cuStreamBeginRecaptureToGraph
            | cbid::cuStreamBeginRecaptureToGraph_ptsz
                if is_success =>
            {
                let context = match data.context {
                    CUcontext::NULL => without_cupti::current_context(),
                    context => context,
                };
                let stream = (*parameters.cast::<cuStreamEndCapture_params>()).hStream;
                registry().begin_capture(stream, context);
            }
            // A capture that has failed ends, too.
            cbid::cuStreamEndCapture
            | cbid::cuStreamEndCapture_ptsz
            | cbid::cuStreamDestroy
            | cbid::cuStreamDestroy_v2
                if is_over =>
            {
                let stream = (*parameters.cast::<cuStreamEndCapture_params>()).hStream;
                registry().end_capture(stream);
            }
            cbid::cuModuleUnload => {
                let module = (*parameters.cast::<cuModuleUnload_params>()).hmod;
                unload(is_over, is_success, |known| {
                    known.located.as_ref().map(|at| at.module).or(known.handle) == Some(module)
                });
            }
            cbid::cuLibraryUnload => {
                let library = (*parameters.cast::<cuLibraryUnload_params>()).library;
                if !is_over {
                    prepare::close_library(library);
                }
                unload(is_over, is_success, |known| {
                    let located = known.located.as_ref().and_then(|at| at.library);
                    located.or(known.library) == Some(library)
                });
                if is_success {
                    registry().remove_library(library);
                }
            }
            cbid::cuCtxDestroy | cbid::cuCtxDestroy_v2 => {
                let context = (*parameters.cast::<cuCtxDestroy_params>()).ctx;
                if !is_over {
                    registry().end_captures_in(context);
                    prepare::close_context(context);
                    report_destruction([context]);
                }
                // Its handle must not be used any more. CUPTI reports the destruction, but CUPTI may be missing.
                if is_success {
                    registry().remove_context(context);
                }
                unload(is_over, is_success, |known| known.context == context);
            }
            cbid::cuDevicePrimaryCtxRelease
            | cbid::cuDevicePrimaryCtxRelease_v2
            | cbid::cuDevicePrimaryCtxReset
            | cbid::cuDevicePrimaryCtxReset_v2
            | cbid::cuGreenCtxDestroy => {
                report_destruction(primary);
                // It is not certain that the call destroys the context.
                unload(is_over, false, |known| Some(known.context) == primary);
            }
            _ => {}
        }
    }
    if is_over && loads(id) {
        match without_cupti::is_active() {
            true => prepare::libraries(without_cupti::load),
            false => prepare::libraries(handles::load),
        }
        if creates(id) && is_success {
            // SAFETY: the arguments of a function that creates contexts, which has succeeded.
            let context = unsafe { *(*parameters.cast::<cuCtxCreate_params>()).pctx };
            prepare::context_returned(context);
        }
        let mut registry = registry();
        for executable in loaded {
            if let Some(module) = registry.module_mut(executable) {
                module.is_loading = false;
                module.is_prepared = true;
            }
        }
    }
}

/// Whether a function releases or resets a primary context.
fn releases(id: c_uint) -> bool {
    matches!(
        id,
        cbid::cuDevicePrimaryCtxRelease
            | cbid::cuDevicePrimaryCtxRelease_v2
            | cbid::cuDevicePrimaryCtxReset
            | cbid::cuDevicePrimaryCtxReset_v2
            | cbid::cuGreenCtxDestroy
    )
}

/// Counts the users of primary contexts. Before a call that may destroy one, returns it.
///
/// # Safety
/// `parameters` are the function's arguments; output arguments are valid if the call `is_success`.
unsafe fn observe_primary(
    id: c_uint,
    is_over: bool,
    is_success: bool,
    parameters: *const c_void,
) -> Option<CUcontext> {
    // SAFETY: the caller's promise.
    unsafe {
        match id {
            cbid::cuDevicePrimaryCtxRetain if is_success => {
                primary::retained((*parameters.cast::<cuDevicePrimaryCtxRetain_params>()).dev);
            }
            cbid::cuGreenCtxCreate => {
                primary::set_creating_green(!is_over);
                if is_success {
                    let parameters = &*parameters.cast::<cuGreenCtxCreate_params>();
                    primary::green_created(*parameters.phCtx, parameters.dev);
                    if let Some(context) = primary::primary_context(parameters.dev) {
                        registry().context_mut(context);
                        if let Some(drain) = observers::drain() {
                            drain.context_created();
                        }
                    }
                }
            }
            cbid::cuCtxFromGreenCtx if is_success => {
                let parameters = &*parameters.cast::<cuCtxFromGreenCtx_params>();
                primary::green_converted(parameters.hCtx, *parameters.pContext);
            }
            cbid::cuGreenCtxDestroy => {
                let green = (*parameters.cast::<cuGreenCtxDestroy_params>()).hCtx;
                if is_success {
                    primary::green_destroyed(green);
                }
                let device = primary::device_of_green(green).filter(|_| !is_over)?;
                if primary::releasing(device) {
                    return primary::primary_context(device);
                }
            }
            _ if releases(id) && !is_over => {
                let device = (*parameters.cast::<cuDevicePrimaryCtxReset_params>()).dev;
                let is_reset = matches!(
                    id,
                    cbid::cuDevicePrimaryCtxReset | cbid::cuDevicePrimaryCtxReset_v2
                );
                if is_reset || primary::releasing(device) {
                    return primary::primary_context(device);
                }
            }
            _ => {}
        }
    }
    None
}

/// Contexts may be about to be destroyed.
fn report_destruction(contexts: impl IntoIterator<Item = CUcontext>) {
    if let Some(trace) = observers::trace() {
        for context in contexts {
            trace.context_destroying(context.0 as u64);
        }
    }
}

/// A call has loaded a module.
fn module_loaded(handle: CUmodule, loaded: &[ExecutableId]) {
    let mut registry = registry();
    for &executable in loaded {
        if let Some(module) = registry.module_mut(executable) {
            module.handle = Some(handle);
        }
    }
    drop(registry);
    if let Some(Ok(driver)) = driver::find() {
        for &executable in loaded {
            prepare::set_up(driver, executable);
        }
    }
}

fn library_loaded(handle: CUlibrary, code: Result<Code, Damage>) {
    if without_cupti::is_active() {
        without_cupti::library_loaded(handle, code);
    } else {
        let counting = code.as_ref().map_or(Counting::Unknown, Code::counting);
        registry().add_library(handle, counting, None);
    }
}

/// A call unloads the modules that `is_unloaded` accepts, or has done so. `is_success`: those that it announced are
/// unloaded; otherwise only those are that CUPTI has reported.
fn unload(is_over: bool, is_success: bool, is_unloaded: impl Fn(&Module) -> bool) {
    if is_over {
        let unloading = take_of_thread(&mut registry().unloading);
        for (executable, generation) in unloading {
            let mut registry = registry();
            if is_success {
                registry.remove_modules(|known| known.executable == executable);
            }
            let is_unloaded = registry.module(executable).is_none();
            drop(registry);
            if let Some(drain) = observers::drain() {
                drain.destroyed(executable, generation, is_unloaded);
            }
        }
        if let Some(Ok(driver)) = driver::find() {
            prepare::free_unused(driver);
        }
        return;
    }
    // The modules and their handles must be known.
    without_cupti::find_modules();
    handles::locate_all();
    let modules: Vec<ExecutableId> = {
        let registry = registry();
        let modules = registry.modules.iter().filter(|module| is_unloaded(module));
        modules.map(|module| module.executable).collect()
    };
    wait::before_unloading(&modules);
    let mut unloading = Vec::new();
    for executable in modules {
        let drain = observers::drain();
        let generation = drain.and_then(|drain| drain.destroying(Source::Tool, executable));
        unloading.extend(generation.map(|generation| (executable, generation)));
    }
    let thread = threads::thread_id();
    let unloading = unloading.into_iter().map(|of| (thread, of));
    registry().unloading.extend(unloading);
}
