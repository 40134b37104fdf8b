//! Initializes devprof when it is loaded. Starts no threads and does not initialize HSA, HIP or CUDA.

use super::leader::{self, Leader};
use super::request::Request;
use super::{cuda, exit, fork, handler, lifecycle, observers, tool};
use crate::gpu;
use crate::support::diagnostics;
use crate::support::panic_guard::{Cost, guarded};
use crate::support::run_log::{self, Event};
use crate::support::settings::settings;
use crate::sys;
use crate::sys::loader;
use std::ffi::c_void;

/// The constructor of the program or library that contains devprof. `on_load`: the address of its `OnLoad`.
/// `injection`: the address of its `InitializeInjection`. Returns false if devprof does nothing in this process.
pub fn start(on_load: *const c_void, injection: *const c_void) -> bool {
    guarded(Cost::Counters, false, || {
        !settings().disabled && start_enabled(on_load, injection)
    })
}

fn start_enabled(on_load: *const c_void, injection: *const c_void) -> bool {
    let leader = leader::find();
    if let Leader::OtherVersion = leader {
        diagnostics::lost(
            "another version of devprof is already in this process; only that one collects",
        );
        return false;
    }
    if run_log::is_enabled()
        && let Ok(program) = std::env::current_exe()
    {
        run_log::append_path(Event::Loaded, &program);
    }
    lifecycle::set_owner();
    gpu::observers::set(&observers::Drain, &observers::TRACE);
    handler::set_exit_handler(exit::at_exit);
    sys::exit::at_fork(&fork::HANDLERS);
    if let Leader::Other = leader {
        handler::register_at_exit(exit::at_close);
        // Exit handlers run in the reverse order of their registration: the drain runs before all earlier handlers.
        leader::request(Request::RegisterExit {});
    } else {
        // The other instances have pointers to this one.
        loader::keep_loaded(start as *const c_void);
        handler::register_exit_handler();
        if !sys::exit::at_quick_exit(exit::at_exit) {
            diagnostics::lost(
                "cannot register a handler for quick_exit: device counters are not written if the program calls it",
            );
        }
    }
    tool::register(on_load);
    cuda::register(injection);
    lifecycle::constructed(settings().is_traced());
    true
}
