//! Observes which code the driver loads and unloads, from calls of its functions. CUPTI ([`super::subscriber`]) or the
//! functions that the shared library wraps ([`super::wrapped`]) report these calls. Here the registry is filled, and events
//! are reported before and after modules are unloaded.
//!
//! The driver holds no locks during these reports, so a drain may run.

use super::code::{Code, Counting, Damage};
use super::registry::{self, Module, registry, take_loaded, take_of_thread};
use super::{driver, handles, image, prepare, primary, saved, wait, without_cupti};
use crate::gpu::observers::{self, Source};
use crate::gpu::runtime::ExecutableId;
use crate::support::sync::Busy;
use crate::sys::threads;
use cuda_abi::cupti::*;
use cuda_abi::driver::{CUcontext, CUlibrary, CUmodule, CUresult};
use std::cell::Cell;
use std::ffi::{CStr, OsStr, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// The effect of a function.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    CreateContext,
    DestroyContext,
    RetainPrimary,
    ReleasePrimary,
    ResetPrimary,
    CreateGreen,
    DestroyGreen,
    ConvertGreen,
    LoadModule,
    LoadModuleFile,
    UnloadModule,
    LoadLibrary,
    LoadLibraryFile,
    UnloadLibrary,
    BeginCapture,
    EndCapture,
}
use Kind::*;

/// The calls to observe: their numbers in CUPTI's callbacks.
pub const CALLS: &[(c_uint, Kind)] = &[
    (cbid::cuCtxCreate, CreateContext),
    (cbid::cuCtxCreate_v2, CreateContext),
    (cbid::cuCtxCreate_v3, CreateContext),
    (cbid::cuCtxCreate_v4, CreateContext),
    (cbid::cuCtxDestroy, DestroyContext),
    (cbid::cuCtxDestroy_v2, DestroyContext),
    (cbid::cuDevicePrimaryCtxRetain, RetainPrimary),
    (cbid::cuDevicePrimaryCtxRelease, ReleasePrimary),
    (cbid::cuDevicePrimaryCtxRelease_v2, ReleasePrimary),
    (cbid::cuDevicePrimaryCtxReset, ResetPrimary),
    (cbid::cuDevicePrimaryCtxReset_v2, ResetPrimary),
    (cbid::cuGreenCtxCreate, CreateGreen),
    (cbid::cuGreenCtxDestroy, DestroyGreen),
    (cbid::cuCtxFromGreenCtx, ConvertGreen),
    (cbid::cuModuleLoad, LoadModuleFile),
    (cbid::cuModuleLoadData, LoadModule),
    (cbid::cuModuleLoadDataEx, LoadModule),
    (cbid::cuModuleLoadFatBinary, LoadModule),
    (cbid::cuModuleUnload, UnloadModule),
    (cbid::cuLibraryLoadData, LoadLibrary),
    (cbid::cuLibraryLoadFromFile, LoadLibraryFile),
    (cbid::cuLibraryUnload, UnloadLibrary),
    (cbid::cuStreamBeginCapture, BeginCapture),
    (cbid::cuStreamBeginCapture_ptsz, BeginCapture),
    (cbid::cuStreamBeginCapture_v2, BeginCapture),
    (cbid::cuStreamBeginCapture_v2_ptsz, BeginCapture),
    (cbid::cuStreamBeginCaptureToGraph, BeginCapture),
    (cbid::cuStreamBeginCaptureToGraph_ptsz, BeginCapture),
    (cbid::cuStreamBeginRecaptureToGraph, BeginCapture),
    (cbid::cuStreamBeginRecaptureToGraph_ptsz, BeginCapture),
    (cbid::cuStreamEndCapture, EndCapture),
    (cbid::cuStreamEndCapture_ptsz, EndCapture),
    (cbid::cuStreamDestroy, EndCapture),
    (cbid::cuStreamDestroy_v2, EndCapture),
];

/// `None`: calls of this function are not observed.
pub fn kind(id: c_uint) -> Option<Kind> {
    let (_, kind) = CALLS.iter().find(|(known, _)| *known == id)?;
    Some(*kind)
}

thread_local! {
    /// The thread is handling a report of a call, so a call from there is devprof's own.
    static IS_OWN: Cell<bool> = const { Cell::new(false) };
}

impl Kind {
    /// Whether a function creates a context.
    fn creates(self) -> bool {
        matches!(self, CreateContext | RetainPrimary)
    }

    /// Whether a function loads code whose kernels can only be launched when the call is over. A new context may get
    /// the code of all libraries (CUDA_MODULE_LOADING=EAGER).
    fn loads(self) -> bool {
        self.creates()
            || matches!(
                self,
                LoadModule | LoadModuleFile | LoadLibrary | LoadLibraryFile
            )
    }

    /// Whether a function releases or resets a primary context.
    fn releases(self) -> bool {
        matches!(self, ReleasePrimary | ResetPrimary | DestroyGreen)
    }
}

/// A module was loaded. To be called during the call that loads it.
pub fn loaded(context: CUcontext, id: u32, cubin: &[u8]) {
    let mut registry = registry();
    let n = registry.next();
    match image::read(cubin, registry::base(n)) {
        Ok(None) => {}
        Ok(Some(image)) => {
            saved::save(&image, cubin);
            registry.context_mut(context);
            registry.modules.push(Module {
                id,
                ..Module::new(n, context, image.into())
            });
            drop(registry);
            registry::add_loaded(ExecutableId::Cuda(n));
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
/// `data` describes a call of a function of this kind, one of [`CALLS`].
pub unsafe fn report_call(kind: Kind, data: &CUpti_CallbackData) {
    // Also after a panic, the thread's next calls are the program's.
    if let Some(_own) = Busy::begin(&IS_OWN) {
        // SAFETY: the caller's promise.
        unsafe { call(kind, data) };
    }
}

/// # Safety
/// `data` describes a call of a function of this kind.
unsafe fn call(kind: Kind, data: &CUpti_CallbackData) {
    let is_over = data.callbackSite == CUPTI_API_EXIT;
    let mut loaded = Vec::new();
    if !is_over || kind.loads() {
        loaded = take_loaded();
    }
    if kind.loads() {
        registry::set_loading(!is_over);
    }
    // SAFETY: after the call, a pointer to its result.
    let is_success = is_over
        && unsafe { data.functionReturnValue.cast::<CUresult>().as_ref() }
            .is_some_and(|result| *result == CUresult::SUCCESS);
    let parameters = data.functionParams;
    // SAFETY: the caller's promise.
    let primary = unsafe { observe_primary(kind, is_over, is_success, parameters) };
    if primary.is_none() && !is_over && kind.releases() {
        return;
    }
    // SAFETY: the function's arguments, of the type in the header; output arguments are valid when the call is over and
    // has succeeded.
    unsafe {
        match kind {
            LoadModule | LoadModuleFile if is_success => {
                let parameters = &*parameters.cast::<cuModuleLoadData_params>();
                if without_cupti::is_active() {
                    let code = read(kind, parameters.image);
                    without_cupti::module_loaded(*parameters.module, code);
                } else {
                    module_loaded(*parameters.module, &loaded);
                }
            }
            LoadLibrary | LoadLibraryFile if is_success => {
                let parameters = &*parameters.cast::<cuLibraryLoadData_params>();
                library_loaded(*parameters.library, read(kind, parameters.code));
            }
            _ if kind.creates() && is_success && without_cupti::is_active() => {
                let parameters = &*parameters.cast::<cuCtxCreate_params>();
                without_cupti::context_created(*parameters.pctx);
            }
            BeginCapture if is_success => {
                let context = match data.context {
                    CUcontext::NULL => without_cupti::current_context(),
                    context => context,
                };
                let stream = (*parameters.cast::<cuStreamEndCapture_params>()).hStream;
                registry().begin_capture(stream, context);
            }
            // A capture that has failed ends, too.
            EndCapture if is_over => {
                let stream = (*parameters.cast::<cuStreamEndCapture_params>()).hStream;
                registry().end_capture(stream);
            }
            UnloadModule => {
                let module = (*parameters.cast::<cuModuleUnload_params>()).hmod;
                unload(is_over, is_success, |known| {
                    known.located.as_ref().map(|at| at.module).or(known.handle) == Some(module)
                });
            }
            UnloadLibrary => {
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
            DestroyContext => {
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
            ReleasePrimary | ResetPrimary | DestroyGreen => {
                report_destruction(primary);
                // It is not certain that the call destroys the context.
                unload(is_over, false, |known| Some(known.context) == primary);
            }
            _ => {}
        }
    }
    if is_over && kind.loads() {
        prepare::libraries(if without_cupti::is_active() {
            without_cupti::load
        } else {
            handles::load
        });
        if kind.creates() && is_success {
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

/// The code that a function has loaded: what devprof has instrumented, or else what the program has passed.
///
/// # Safety
/// `code` is the argument of a call of a function of this kind that has succeeded.
unsafe fn read(kind: Kind, code: *const c_void) -> Result<Code, Damage> {
    if let Some(code) = registry::take_of_process() {
        return Ok(Arc::unwrap_or_clone(code));
    }
    // SAFETY: the caller's promise: the path of a file, or code that the driver has loaded.
    unsafe {
        if matches!(kind, LoadModuleFile | LoadLibraryFile) {
            let path = CStr::from_ptr(code.cast());
            Code::read_file(Path::new(OsStr::from_bytes(path.to_bytes())))
        } else {
            Code::read_memory(code)
        }
    }
}

/// Counts the users of primary contexts. Before a call that may destroy one, returns it.
///
/// # Safety
/// `parameters` are the function's arguments; output arguments are valid if the call `is_success`.
unsafe fn observe_primary(
    kind: Kind,
    is_over: bool,
    is_success: bool,
    parameters: *const c_void,
) -> Option<CUcontext> {
    // SAFETY: the caller's promise.
    unsafe {
        match kind {
            RetainPrimary if is_success => {
                primary::retained((*parameters.cast::<cuDevicePrimaryCtxRetain_params>()).dev);
            }
            CreateGreen => {
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
            ConvertGreen if is_success => {
                let parameters = &*parameters.cast::<cuCtxFromGreenCtx_params>();
                primary::green_converted(parameters.hCtx, *parameters.pContext);
            }
            DestroyGreen => {
                let green = (*parameters.cast::<cuGreenCtxDestroy_params>()).hCtx;
                if is_success {
                    primary::green_destroyed(green);
                }
                let device = primary::device_of_green(green).filter(|_| !is_over)?;
                if primary::releasing(device) {
                    return primary::primary_context(device);
                }
            }
            _ if kind.releases() && !is_over => {
                let device = (*parameters.cast::<cuDevicePrimaryCtxReset_params>()).dev;
                if kind == ResetPrimary || primary::releasing(device) {
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
