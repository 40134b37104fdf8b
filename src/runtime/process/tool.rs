//! devprof's shared library as a tool of ROCr.

use super::handler::register_exit_handler;
use super::leader;
use super::lifecycle;
use super::request::Request;
use crate::amd::tools_variable::with_tool;
use crate::amd::{api, copy_hooks, intercept, tables, tool_hooks, trace_hooks};
use crate::support::diagnostics;
use crate::support::features::HAS_TRACE;
use crate::support::panic_guard::{Cost, guarded};
use crate::support::settings::settings;
use crate::sys::{env, loader};
use crate::trace;
use hsa_abi::ApiPrefix;
use std::ffi::{OsStr, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether ROCr loads the tools of HSA_TOOLS_LIB if there are tools of rocprofiler-sdk, too.
const V1_TOOLS: &str = "HSA_TOOLS_ROCPROFILER_V1_TOOLS";

/// This instance is the shared library.
static IS_SHARED_LIBRARY: AtomicBool = AtomicBool::new(false);
/// ROCr has loaded this instance as a tool.
static WAS_LOADED: AtomicBool = AtomicBool::new(false);
/// This instance's hooks are in ROCr's tables.
static HAS_HOOKS: AtomicBool = AtomicBool::new(false);

/// Whether this instance is the shared library, not the archive.
pub fn is_shared_library() -> bool {
    IS_SHARED_LIBRARY.load(Ordering::Relaxed)
}

/// If this instance is the shared library, makes ROCr load it as a tool. `on_load`: the address of its `OnLoad`. To be
/// called by the constructor.
pub fn register(on_load: *const c_void) {
    // ROCr cannot load an archive as a tool.
    if !HAS_TRACE {
        return;
    }
    let Some(library) = loader::exporting_library(c"OnLoad", on_load) else {
        return;
    };
    IS_SHARED_LIBRARY.store(true, Ordering::Relaxed);
    if settings().trace.is_some() {
        trace::prepare(&settings().tracing);
        leader::set_traces();
    }
    let old = env::env("HSA_TOOLS_LIB");
    let added = with_tool(old.as_deref(), library.as_os_str());
    // If the library is not listed, and cannot be added to the list, HSA may already be initialized.
    let is_listed = added.is_none_or(|value| env::set_env(c"HSA_TOOLS_LIB", &value));
    if is_listed {
        lifecycle::expect_tool();
    }
    // With rocprofiler-register, ROCr skips the tools of HSA_TOOLS_LIB if there is a rocprofiler-sdk tool, unless this
    // variable is set (runtime.cpp, LoadTools). The user's value is kept.
    if is_listed && env::env(V1_TOOLS).is_none() {
        env::set_env(c"HSA_TOOLS_ROCPROFILER_V1_TOOLS", OsStr::new("1"));
    }
}

/// ROCr has loaded this instance as a tool, at the end of `hsa_init`.
///
/// The shared library's constructor ran before the program's, so its exit handler would run after HIP has
/// unloaded the code objects. A handler that is registered here runs before.
///
/// # Safety
/// `table` is ROCr's.
pub unsafe fn on_load(table: *mut ApiPrefix) {
    if !HAS_TRACE {
        return;
    }
    guarded(Cost::Counters, (), || {
        if !lifecycle::is_owner() {
            return;
        }
        WAS_LOADED.store(true, Ordering::Relaxed);
        // SAFETY: ROCr's table, which tools may change in OnLoad.
        let found = unsafe { tables::tables(table) };
        if let Some((core, amd)) = found {
            // SAFETY: as above.
            unsafe {
                api::save_tables(core, amd);
                tool_hooks::install(core, amd);
            }
            HAS_HOOKS.store(true, Ordering::Relaxed);
            leader::request(Request::ToolLoaded {});
        } else {
            lifecycle::do_not_expect_tool();
        }
        register_exit_handler();
        let Some(pattern) = &settings().trace else {
            return;
        };
        let Some((core, amd)) = found else {
            diagnostics::lost(
                "DEVPROF_TRACE: devprof does not support the version of this HSA runtime's API tables; the program is not traced",
            );
            return trace::calls::turn_off();
        };
        // SAFETY: as above. The slots were found in these tables.
        unsafe { tables::save(core, amd, tool_hooks::queue_function_slots()) };
        if !trace::start(pattern, lifecycle::TRACED) {
            return trace::calls::turn_off();
        }
        // SAFETY: as above. The tables are saved.
        unsafe { trace_hooks::install(core, amd) };
        if settings().tracing.copies {
            // SAFETY: as above.
            unsafe { copy_hooks::install(core, amd) };
            trace::copies::start();
        }
        trace::calls::start();
    });
}

/// HSA was shut down. Its functions must not be called any more; everything was drained before.
pub fn on_unload() {
    if HAS_HOOKS.load(Ordering::Relaxed) {
        leader::request(Request::ToolUnloaded {});
        guarded(Cost::Dispatches, (), || {
            if HAS_TRACE && lifecycle::is_owner() {
                trace::release();
                intercept::forget_queues();
            }
        });
    }
}

/// HSA is initialized. Reports that there is no trace if ROCr has not loaded the shared library as a tool.
pub fn report_if_skipped() {
    guarded(Cost::Dispatches, (), || {
        if HAS_TRACE
            && lifecycle::is_owner()
            && is_shared_library()
            && settings().trace.is_some()
            && !WAS_LOADED.load(Ordering::Relaxed)
        {
            diagnostics::lost(
                "DEVPROF_TRACE: nothing is recorded: ROCr did not load devprof as a tool. Either HSA_TOOLS_LIB was changed, or a rocprofiler-sdk tool is in the process and HSA_TOOLS_ROCPROFILER_V1_TOOLS is off (set it to 1)",
            );
            trace::calls::turn_off();
        }
    });
}
