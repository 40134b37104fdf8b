//! CUPTI's callbacks. They pass on the modules that the driver loads, and the calls of its functions ([`super::observed`]).
//!
//! Callbacks about resources run while the driver holds its locks: they only change the registry. Callbacks about API
//! calls run without these locks, so events are reported there, and a drain may run.

use super::activity;
use super::api_calls::{self, Reported};
use super::cupti::{self, ActivityFunctions, Cupti};
use super::driver;
use super::observed::{self, CALLS};
use super::primary;
use super::registry::{self, Module, registry};
use crate::gpu::{observers, owner};
use crate::support::panic_guard::{Cost, guarded, guarded_hot};
use crate::support::settings::settings;
use crate::sys::threads;
use cuda_abi::activity::CUpti_TimestampCallbackFunc;
use cuda_abi::cupti::*;
use std::ffi::{CStr, c_char, c_uint, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Why the modules of this process cannot be observed.
#[derive(Debug, thiserror::Error)]
pub enum Unobserved {
    #[error(
        "CUPTI is not installed where devprof searches (next to the CUDA runtime, in CUDA_HOME, /usr/local/cuda and the dynamic loader's directories): install it (nvidia-cuda-cupti from PyPI, or the CUDA Toolkit) and set DEVPROF_CUPTI to the path of libcupti.so"
    )]
    NotFound,
    #[error(
        "another tool uses CUPTI, which serves only one: {0}; run the program without that tool"
    )]
    Taken(String),
    #[error(
        "the driver has loaded another tool, which may use CUPTI (CUDA_INJECTION64_PATH); unset that variable"
    )]
    OtherTool,
    #[error("no trace was requested, so CUPTI is left to the program and its tools")]
    NotNeeded,
    #[error("DEVPROF_CUPTI is none")]
    Off,
    #[error("CUPTI cannot be used: {0}")]
    Refused(String),
}

/// The value of DEVPROF_CUPTI for which CUPTI is not used.
const OFF: &str = "none";

static WAS_STARTED: AtomicBool = AtomicBool::new(false);

/// The subscriber, and the functions to observe more.
struct Subscribed {
    handle: CUpti_SubscriberHandle,
    enable: cuptiEnableCallback,
    activity: Option<ActivityFunctions>,
}

static SUBSCRIBED: OnceLock<Subscribed> = OnceLock::new();

const RESOURCES: &[c_uint] = &[
    CUPTI_CBID_RESOURCE_CONTEXT_CREATED,
    CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING,
    CUPTI_CBID_RESOURCE_MODULE_LOADED,
    CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING,
];

/// Whether [`start`] was called.
pub fn was_started() -> bool {
    WAS_STARTED.load(Ordering::Acquire)
}

/// Begins to observe modules. To be called when the driver is being initialized.
pub fn start() -> Result<(), Unobserved> {
    if WAS_STARTED.swap(true, Ordering::AcqRel) {
        return Ok(());
    }
    if settings()
        .cupti
        .as_deref()
        .is_some_and(|value| value == OFF)
    {
        return Err(Unobserved::Off);
    }
    let mut error = Unobserved::NotFound;
    for path in cupti::candidates() {
        let cupti = match cupti::load(&path) {
            Ok(cupti) => cupti,
            Err(why) if settings().cupti.is_some() => {
                return Err(Unobserved::Refused(format!("DEVPROF_CUPTI: {why}")));
            }
            Err(_) => continue,
        };
        match subscribe(&cupti) {
            Ok(()) => return Ok(()),
            Err(Unobserved::Refused(why)) => {
                error = Unobserved::Refused(format!("{}: {why}", path.display()));
            }
            Err(other) => return Err(other),
        }
    }
    Err(error)
}

/// Does not use CUPTI. [`was_started`] is true from now on.
pub fn leave(why: Unobserved) -> Result<(), Unobserved> {
    if WAS_STARTED.swap(true, Ordering::AcqRel) {
        Ok(())
    } else {
        Err(why)
    }
}

fn subscribe(cupti: &Cupti) -> Result<(), Unobserved> {
    let mut subscriber = CUpti_SubscriberHandle(0);
    let mut owner = [0u8; CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN];
    let result = match cupti.subscribe_v2 {
        Some(subscribe) => {
            let mut parameters = CUpti_SubscriberParams {
                structSize: size_of::<CUpti_SubscriberParams>(),
                subscriberName: c"devprof".as_ptr(),
                oldSubscriberName: owner.as_mut_ptr().cast::<c_char>(),
                oldSubscriberSize: owner.len(),
                // CUPTI's activities, which a trace needs, are then another interface.
                allowMultipleSubscribers: u8::from(!settings().is_traced()),
                padding: [0; 7],
            };
            let mut subscribe = |size| {
                parameters.structSize = size;
                // SAFETY: the callback stays valid, because devprof is never unloaded; it has the parameters of the
                // header, and so is their size.
                unsafe {
                    subscribe(
                        &raw mut subscriber,
                        callback,
                        std::ptr::null_mut(),
                        &raw mut parameters,
                    )
                }
            };
            match subscribe(size_of::<CUpti_SubscriberParams>()) {
                // CUPTI is older.
                CUptiResult::INVALID_PARAMETER => subscribe(CUPTI_SUBSCRIBER_PARAMS_SIZE_13_0),
                result => result,
            }
        }
        // SAFETY: as above.
        None => unsafe {
            (cupti.subscribing.cuptiSubscribe)(&raw mut subscriber, callback, std::ptr::null_mut())
        },
    };
    match result {
        CUptiResult::SUCCESS => {}
        CUptiResult::MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED => {
            let name = CStr::from_bytes_until_nul(&owner).unwrap_or_default();
            return Err(Unobserved::Taken(if name.is_empty() {
                "its name is unknown".into()
            } else {
                name.to_string_lossy().into_owned()
            }));
        }
        error => return Err(Unobserved::Refused(format!("{error:?} of cuptiSubscribe"))),
    }
    let all = RESOURCES.iter().map(|&id| (CUPTI_CB_DOMAIN_RESOURCE, id));
    let calls = CALLS
        .iter()
        .map(|&(id, _)| (CUPTI_CB_DOMAIN_DRIVER_API, id));
    for (domain, id) in all.chain(calls) {
        // SAFETY: the subscriber from above; numbers of the header.
        let result = unsafe { (cupti.subscribing.cuptiEnableCallback)(1, subscriber, domain, id) };
        // An older CUPTI does not have all functions, and programs that it serves cannot call them.
        if result != CUptiResult::SUCCESS && domain == CUPTI_CB_DOMAIN_RESOURCE {
            // SAFETY: the subscriber from above.
            unsafe { (cupti.subscribing.cuptiUnsubscribe)(subscriber) };
            return Err(Unobserved::Refused(format!(
                "{result:?} of cuptiEnableCallback"
            )));
        }
    }
    SUBSCRIBED.get_or_init(|| Subscribed {
        handle: subscriber,
        enable: cupti.subscribing.cuptiEnableCallback,
        activity: cupti.activity,
    });
    Ok(())
}

/// The process ends, so launches are observed.
static IS_ENDING: AtomicBool = AtomicBool::new(false);
/// The program has called a function of CUDA since.
static WAS_CALLED: AtomicBool = AtomicBool::new(false);

/// At exit: whether the program may have launched kernels since the last call of this function.
pub fn may_have_launched() -> bool {
    let Some(subscribed) = SUBSCRIBED.get() else {
        return true;
    };
    if IS_ENDING.swap(true, Ordering::Relaxed) {
        return WAS_CALLED.swap(false, Ordering::Relaxed);
    }
    for (domain, id) in api_calls::submitting() {
        if domain == CUPTI_CB_DOMAIN_DRIVER_API {
            // SAFETY: the subscriber; numbers of the header. An older CUPTI does not have all functions, and programs that
            // it serves cannot call them.
            unsafe { (subscribed.enable)(1, subscribed.handle, domain, id) };
        }
    }
    true
}

/// Begins to report API calls, and prepares the recording of activities. To be called once, after [`start`] has succeeded.
/// `now`: the trace's clock, nanoseconds.
pub fn trace(now: CUpti_TimestampCallbackFunc) -> Result<(), activity::Unrecorded> {
    const ENABLE: &str = "cuptiEnableCallback";
    let subscribed = SUBSCRIBED.get();
    let Some((subscribed, functions)) =
        subscribed.and_then(|subscribed| Some((subscribed, subscribed.activity?)))
    else {
        return Err(activity::Unrecorded::TooOld(0));
    };
    let tracing = &settings().tracing;
    activity::prepare(functions, now, tracing.copies)?;
    let enable = |domain, id| {
        // SAFETY: the subscriber; numbers of the header.
        unsafe { (subscribed.enable)(1, subscribed.handle, domain, id) }
    };
    activity::check(
        ENABLE,
        enable(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_STREAM_CREATED),
    )?;
    if tracing.api {
        for domain in [CUPTI_CB_DOMAIN_RUNTIME_API, CUPTI_CB_DOMAIN_DRIVER_API] {
            // SAFETY: the subscriber; a domain of the header.
            let result = unsafe { (functions.cuptiEnableDomain)(1, subscribed.handle, domain) };
            activity::check("cuptiEnableDomain", result)?;
        }
    } else {
        activity::check(
            ENABLE,
            enable(CUPTI_CB_DOMAIN_DRIVER_API, cbid::cuLaunchKernel),
        )?;
        for (domain, id) in api_calls::submitting().chain(api_calls::PROFILER) {
            // An older CUPTI does not have all functions, and programs that it serves cannot call them.
            enable(domain, id);
        }
    }
    api_calls::set_reported(if tracing.api {
        Reported::All
    } else {
        Reported::Submitting
    });
    Ok(())
}

/// # Safety
/// Called by CUPTI with the data that the domain and the number require.
unsafe extern "C" fn callback(_: *mut c_void, domain: c_uint, id: c_uint, data: *const c_void) {
    let is_call = matches!(
        domain,
        CUPTI_CB_DOMAIN_RUNTIME_API | CUPTI_CB_DOMAIN_DRIVER_API
    );
    if is_call && api_calls::is_reported() && !data.is_null() {
        // SAFETY: the domain's data. Without a trace, or in a forked child, nothing is recorded.
        guarded_hot(Cost::Dispatches, (), || unsafe {
            api_calls::handle(domain, id, &*data.cast());
        });
    }
    if is_call && IS_ENDING.load(Ordering::Relaxed) && !driver::is_own_call() {
        WAS_CALLED.store(true, Ordering::Relaxed);
    }
    let call = match domain {
        CUPTI_CB_DOMAIN_DRIVER_API => observed::kind(id),
        _ => None,
    };
    if is_call && call.is_none() {
        return;
    }
    guarded(Cost::Counters, (), || {
        if data.is_null() || !owner::is_owner() {
            return;
        }
        // SAFETY: the domain's data.
        unsafe {
            match call {
                Some(kind) => observed::report_call(kind, &*data.cast()),
                None if domain == CUPTI_CB_DOMAIN_RESOURCE => resource(id, &*data.cast()),
                None => {}
            }
        }
    });
}

/// # Safety
/// `data` is from a callback with this number.
unsafe fn resource(id: c_uint, data: &CUpti_ResourceData) {
    match id {
        CUPTI_CBID_RESOURCE_CONTEXT_CREATED if !primary::is_creating_green() => {
            if registry::is_loading() {
                registry().add_new_context(data.context);
            } else {
                // The end of the call that has created it is not observed.
                registry().context_mut(data.context);
            }
            if let Some(drain) = observers::drain() {
                drain.context_created();
            }
        }
        CUPTI_CBID_RESOURCE_STREAM_CREATED => {
            if let Some(trace) = observers::trace() {
                trace.stream_created(data.resourceHandle as u64);
            }
        }
        CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING => {
            if let Some(trace) = observers::trace() {
                trace.modules_unloading(data.context.0 as u64, None);
            }
            let mut registry = registry();
            registry.report_unannounced(|module| module.context == data.context);
            registry.remove_context(data.context);
        }
        CUPTI_CBID_RESOURCE_MODULE_LOADED => {
            // SAFETY: the caller's promise: the descriptor is a module's, and its bytes are valid during the call.
            unsafe {
                if let Some(module) = data
                    .resourceDescriptor
                    .cast::<CUpti_ModuleResourceData>()
                    .as_ref()
                    && !module.pCubin.is_null()
                {
                    let cubin = std::slice::from_raw_parts(module.pCubin, module.cubinSize);
                    if let Some(trace) = observers::trace() {
                        trace.module_loaded(data.context.0 as u64, module.moduleId, cubin);
                    }
                    observed::loaded(data.context, module.moduleId, cubin);
                }
            }
        }
        CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING => {
            // SAFETY: as above.
            let module = unsafe {
                data.resourceDescriptor
                    .cast::<CUpti_ModuleResourceData>()
                    .as_ref()
            };
            if let Some(module) = module {
                if let Some(trace) = observers::trace() {
                    trace.modules_unloading(data.context.0 as u64, Some(module.moduleId));
                }
                let mut registry = registry();
                // Modules of other contexts have the same ids.
                let is_it =
                    |known: &Module| known.id == module.moduleId && known.context == data.context;
                registry.report_unannounced(is_it);
                // If a call of this thread unloads modules, their handles are known, and removed when it is over.
                let thread = threads::thread_id();
                if registry.unloading.iter().all(|(of, _)| *of != thread) {
                    registry.remove_modules(is_it);
                }
            }
        }
        _ => {}
    }
}
