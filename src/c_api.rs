//! Every symbol that devprof exports, but for the functions of HIP that it watches, and the constructor. No panic leaves a
//! function of this file.

use crate::drain;
use crate::guard::{Busy, Cost, guarded};
use crate::host;
use crate::hsa::types::ExecutableHandle;
use crate::hsa::{self, intercept, originals, tool};
use crate::instance::{self, Found, REFUSED, Request};
use crate::journal::{self, Event};
use crate::report::{self, Outcome};
use crate::settings::Settings;
use crate::snapshot;
use crate::trace;
use std::cell::Cell;
use std::ffi::{OsStr, c_char, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// What to do when unloading cannot be observed.
macro_rules! how_to_observe {
    () => {
        "preload libdevprof.so (devprof run), or link with the flags of `devprof flags` and without hiding hsa_executable_freeze and hsa_executable_destroy (--exclude-libs, version scripts)"
    };
}

fn settings() -> &'static Settings {
    static SETTINGS: OnceLock<Settings> = OnceLock::new();
    SETTINGS.get_or_init(Settings::from_env)
}

/// Whether ROCr loads the tools of HSA_TOOLS_LIB next to those of rocprofiler-sdk.
const V1_TOOLS: &str = "HSA_TOOLS_ROCPROFILER_V1_TOOLS";

/// The process that HSA belongs to, if it is alive: the one that loaded devprof, or a child that forked before HSA was.
static PROCESS: AtomicU32 = AtomicU32::new(0);
/// Some copy is a tool of ROCr, and its hooks report all that is loaded, unloaded, and shut down.
static OBSERVES: AtomicBool = AtomicBool::new(false);
/// This copy is.
static OBSERVES_HERE: AtomicBool = AtomicBool::new(false);
/// The functions that devprof has put in front of ROCr's are called, in some copy.
static IS_CALLED: AtomicBool = AtomicBool::new(false);
/// ROCr has called `OnLoad` in this copy.
static WAS_LOADED: AtomicBool = AtomicBool::new(false);
/// This is the shared library.
static IS_LIBRARY: AtomicBool = AtomicBool::new(false);
/// Set by each fork, for its child.
static ALIVE_AT_FORK: AtomicBool = AtomicBool::new(false);

/// Whether this process may touch HSA.
fn is_ours() -> bool {
    PROCESS.load(Ordering::Relaxed) == std::process::id() && !settings().disabled
}

/// The user wants a trace.
pub fn is_tracing() -> bool {
    guarded(Cost::Counters, false, || {
        !settings().disabled && settings().trace.is_some()
    })
}

thread_local! {
    /// This thread carries out an order.
    static IS_BUSY: Cell<bool> = const { Cell::new(false) };
}

/// A signal handler has interrupted this thread in a drain, and ends the process, or drains: the drain cannot go on
/// before the handler is done, and what it has locked stays locked.
fn is_interrupted() -> bool {
    let is_busy = IS_BUSY.get();
    if is_busy {
        report::lost(
            "a signal handler interrupted a drain and ends the process, or drains too; what was counted since the last drain is lost",
        );
    }
    is_busy
}

/// Handles a request, in the copy that leads; see there for the answers.
pub fn handle(request: Request) -> u64 {
    // Asked by hooks on threads that are in a request already.
    match request {
        Request::IsObserved {} => return u64::from(is_ours() && OBSERVES.load(Ordering::Relaxed)),
        Request::IsOwnQueue {} => return u64::from(hsa::queues::is_own()),
        _ => {}
    }
    guarded(Cost::Counters, REFUSED, || {
        if !is_ours() {
            return 0;
        }
        if is_interrupted() {
            return REFUSED;
        }
        let _busy = Busy::begin(&IS_BUSY);
        handle_ours(request)
    })
}

fn handle_ours(request: Request) -> u64 {
    let observes = OBSERVES.load(Ordering::Relaxed);
    let run = |order| {
        // Where a shutdown is observed in time nobody has to be kept from it before the last drain.
        let is_last = order == drain::Order::All { wait: false };
        drain::drain(settings(), order, !observes && !is_last)
    };
    let lost = |outcome: Outcome| u64::from(outcome.lost > 0);
    match request {
        Request::Collect { wait } => {
            let outcome = run(drain::Order::All { wait });
            if !observes && !IS_CALLED.load(Ordering::Relaxed) && drain::hsa_is_up() {
                report::lost(
                    if settings().snapshot.is_some() && !snapshot::is_started() {
                        concat!(
                            "cannot observe when code objects are unloaded in this process: what they count between the last collection and their unloading is lost, and DEVPROF_SNAPSHOT_MS has no effect; ",
                            how_to_observe!()
                        )
                    } else {
                        concat!(
                            "cannot observe when code objects are unloaded in this process: what they count between the last collection and their unloading is lost; ",
                            how_to_observe!()
                        )
                    },
                );
            }
            lost(outcome)
        }
        Request::Reset {} => lost(run(drain::Order::Reset)),
        Request::Frozen { executable } => {
            IS_CALLED.store(true, Ordering::Relaxed);
            drain::watch(ExecutableHandle(executable));
            if !observes {
                drain::hold(settings());
            }
            snapshot::start(settings());
            0
        }
        Request::Destroying { executable } => {
            let executable = ExecutableHandle(executable);
            run(drain::Order::Going(executable));
            drain::freezing(executable)
        }
        Request::Destroyed {
            executable,
            generation,
            destroyed,
        } => {
            drain::gone(ExecutableHandle(executable), generation, destroyed);
            0
        }
        Request::ShutDown {} => {
            // HIP may be half gone by now: no waiting for it.
            let outcome = run(drain::Order::All { wait: false });
            drain::release();
            hsa::queues::close();
            lost(outcome)
        }
        Request::Starts {} => {
            IS_CALLED.store(true, Ordering::Relaxed);
            drain::is_changing();
            0
        }
        Request::Started {} => {
            drain::is_changed();
            if !OBSERVES.load(Ordering::Relaxed) {
                drain::ask_for_state();
            }
            0
        }
        Request::IsDown {} => {
            drain::is_changed();
            hsa::queues::open(drain::hsa_is_up());
            0
        }
        Request::Observes {} => {
            OBSERVES.store(true, Ordering::Relaxed);
            drain::is_up(true);
            hsa::queues::forget();
            0
        }
        Request::Unloaded {} => {
            // If HSA comes up again, ROCr may not load the tool again.
            OBSERVES.store(false, Ordering::Relaxed);
            drain::is_up(false);
            0
        }
        Request::Closing {} => {
            let outcome = run(drain::Order::All { wait: false });
            if !drain::is_ending() && drain::has_unobserved() {
                report::lost(concat!(
                    "a library is closed, and devprof cannot observe what is unloaded with it: what it counts when it is opened again may be lost; ",
                    how_to_observe!()
                ));
            }
            lost(outcome)
        }
        Request::AtExit {} => {
            register_exit(at_exit);
            0
        }
        Request::QueueCreated { queue, single } => {
            hsa::queues::made(queue as usize, single);
            0
        }
        Request::QueueDestroying { queue } => {
            hsa::queues::gone(queue as usize);
            0
        }
        // Answered above.
        Request::IsObserved {} | Request::IsOwnQueue {} => REFUSED,
    }
}

/// Collects the counters of every loaded code object and writes or rewrites their files. LLVM's host runtime calls it
/// when it writes its own profile; a program may call it at any time. 0, or -1 when something was lost, which has been
/// said on stderr. (compiler-rt, InstrProfilingFile.c.)
#[unsafe(no_mangle)]
pub extern "C" fn __llvm_profile_hip_collect_device_data() -> c_int {
    instance::status(instance::request(Request::Collect { wait: true }))
}

/// Sets the counters of every loaded code object back to what they were when it was loaded, after the kernels that still
/// run, and forgets what was counted before. 0, or -1 when that failed somewhere, which has been said on stderr.
#[unsafe(no_mangle)]
pub extern "C" fn devprof_reset_counters() -> c_int {
    instance::status(instance::request(Request::Reset {}))
}

// LLVM's own function, where the program is linked with --wrap=__llvm_profile_reset_counters and has it; else null.
// Weak, which Rust's own declarations cannot say.
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

/// Sets the host's and the devices' counters back: what `__llvm_profile_reset_counters` is in a program that was linked
/// with the archive and `-Wl,--wrap=__llvm_profile_reset_counters`.
#[unsafe(no_mangle)]
pub extern "C" fn __wrap___llvm_profile_reset_counters() {
    // SAFETY: written by the dynamic linker, before any of this library's code runs.
    if let Some(reset) = unsafe { devprof_real_reset } {
        // SAFETY: the program's call, to the function that it named. (compiler-rt, InstrProfiling.h.)
        unsafe { reset() };
    }
    devprof_reset_counters();
}

/// For objects that were compiled for earlier device runtimes: devprof finds code objects without being told.
#[unsafe(no_mangle)]
pub extern "C" fn __llvm_profile_offload_register_shadow_variable(_variable: *mut c_void) {}

/// See [`__llvm_profile_offload_register_shadow_variable`].
#[unsafe(no_mangle)]
pub extern "C" fn __llvm_profile_offload_register_section_shadow_variable(_variable: *mut c_void) {}

/// See [`__llvm_profile_offload_register_shadow_variable`].
#[unsafe(no_mangle)]
pub extern "C" fn __llvm_profile_offload_register_dynamic_module(
    _status: c_int,
    _module: *mut *mut c_void,
    _image: *const c_void,
) {
}

/// See [`__llvm_profile_offload_register_shadow_variable`].
#[unsafe(no_mangle)]
pub extern "C" fn __llvm_profile_offload_unregister_dynamic_module(_module: *mut c_void) {}

/// ROCr calls it when it loads the shared library as a tool, at the end of `hsa_init`. The library's own constructor
/// ran before the program's, so its exit handler would come after HIP has unloaded the code objects; a handler
/// registered now comes before.
///
/// # Safety
/// `table` is ROCr's `HsaApiTable`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn OnLoad(
    table: *mut tool::ApiTable,
    _version: u64,
    _failed_tools: u64,
    _failed_tool_names: *const *const c_char,
) -> bool {
    guarded(Cost::Counters, true, || {
        if is_ours() {
            let ears = tool::Ears {
                frozen,
                going,
                gone,
                queue_made,
                queue_gone,
                shut_down,
                is_down,
            };
            WAS_LOADED.store(true, Ordering::Relaxed);
            // SAFETY: ROCr's table, still writable: tools change it in OnLoad.
            unsafe { hsa::remember_tables(table) };
            // SAFETY: as above.
            if unsafe { tool::listen(table, ears) } {
                OBSERVES_HERE.store(true, Ordering::Relaxed);
                instance::request(Request::Observes {});
            } else {
                drain::ask_for_state();
            }
            register_exit(at_exit);
            if let Some(pattern) = &settings().trace {
                // SAFETY: as above.
                unsafe { start_trace(table, pattern) };
            }
        }
        true
    })
}

/// # Safety
/// `table` is ROCr's, in `OnLoad`.
unsafe fn start_trace(table: *mut tool::ApiTable, pattern: &OsStr) {
    // SAFETY: the caller's promise.
    if !unsafe { originals::remember(table) } {
        report::lost(
            "DEVPROF_TRACE: the API tables of this HSA runtime are of a version that devprof does not know; the program runs untraced",
        );
        trace::calls::turn_off();
    } else if trace::start(pattern) {
        // SAFETY: the caller's promise.
        unsafe { intercept::install(table) };
        trace::calls::start();
    } else {
        trace::calls::turn_off();
    }
}

/// ROCr calls it when HSA is shut down. Its functions are out of use by then, and all is drained.
#[unsafe(no_mangle)]
pub extern "C" fn OnUnload() {
    if OBSERVES_HERE.load(Ordering::Relaxed) {
        instance::request(Request::Unloaded {});
        guarded(Cost::Dispatches, (), || {
            if is_ours() {
                trace::release();
            }
        });
    }
}

fn frozen(executable: ExecutableHandle) {
    instance::request(Request::Frozen {
        executable: executable.0,
    });
    guarded(Cost::Dispatches, (), || trace::frozen(executable));
}

fn going(executable: ExecutableHandle) -> u64 {
    instance::request(Request::Destroying {
        executable: executable.0,
    })
}

fn gone(executable: ExecutableHandle, generation: u64, destroyed: bool) {
    instance::request(Request::Destroyed {
        executable: executable.0,
        generation,
        destroyed,
    });
}

fn queue_made(queue: usize, single: bool) {
    if instance::request(Request::IsOwnQueue {}) != 0 {
        return;
    }
    instance::request(Request::QueueCreated {
        queue: queue as u64,
        single,
    });
}

fn queue_gone(queue: usize) {
    if instance::request(Request::IsOwnQueue {}) != 0 {
        return;
    }
    instance::request(Request::QueueDestroying {
        queue: queue as u64,
    });
}

/// Somebody shuts HSA down, perhaps for good.
fn shut_down() {
    instance::request(Request::ShutDown {});
    guarded(Cost::Dispatches, (), || {
        if is_ours() {
            trace::pause();
        }
    });
}

/// It may be alive still: others hold it.
fn is_down() {
    instance::request(Request::IsDown {});
    guarded(Cost::Dispatches, (), || {
        if is_ours() {
            trace::resume();
        }
    });
}

/// HSA is up. Where ROCr has not loaded the shared library as a tool there is no trace.
pub fn report_skipped() {
    guarded(Cost::Dispatches, (), || {
        if is_ours()
            && IS_LIBRARY.load(Ordering::Relaxed)
            && settings().trace.is_some()
            && !WAS_LOADED.load(Ordering::Relaxed)
        {
            report::lost(
                "DEVPROF_TRACE: nothing is recorded, since ROCr did not load devprof as a tool: HSA_TOOLS_LIB was changed, or a rocprofiler-sdk tool is in the process and HSA_TOOLS_ROCPROFILER_V1_TOOLS is off (set it to 1)",
            );
            trace::calls::turn_off();
        }
    });
}

fn register_exit(handler: extern "C" fn()) {
    if !host::at_exit(handler) {
        report::lost(
            "cannot register an exit handler: device counters are only written on the collect call",
        );
    }
}

extern "C" fn at_exit() {
    if is_interrupted() {
        return;
    }
    guarded(Cost::Counters, (), || {
        if is_ours() && instance::leads() {
            drain::ending();
        }
    });
    instance::request(Request::Collect { wait: true });
    guarded(Cost::Counters, (), || {
        if is_ours() {
            snapshot::stop();
            if hsa_is_alive() == Some(true) {
                report_skipped();
            }
            hsa::settle(settings().sync_limit);
            trace::finish(settings().sync_limit);
        }
    });
}

/// The library that holds this copy, which does not lead, is being closed. What it has run is drained before it goes, but
/// nobody waits for another thread: this one holds the dynamic linker's lock.
extern "C" fn at_close() {
    instance::request(Request::Closing {});
}

/// `None`: HSA cannot say.
fn hsa_is_alive() -> Option<bool> {
    match hsa::find() {
        Some(Ok(api)) => api.is_alive().ok(),
        _ => Some(false),
    }
}

unsafe extern "C" fn before_fork() {
    guarded(Cost::Counters, (), || {
        // A runtime that cannot say is taken for alive: the child then keeps away from it.
        let alive = hsa_is_alive().unwrap_or(true);
        ALIVE_AT_FORK.store(alive, Ordering::Relaxed);
        snapshot::before_fork(alive);
    });
}

unsafe extern "C" fn after_fork() {
    snapshot::unbar();
}

/// In the child. If HSA was alive, what is left of it here is the parent's and must not be touched, not even to ask.
unsafe extern "C" fn in_child() {
    guarded(Cost::Counters, (), || {
        snapshot::forked();
        drain::forget_parent();
        hsa::queues::forget();
        host::forget_thread_id();
        let ours = !ALIVE_AT_FORK.load(Ordering::Relaxed);
        PROCESS.store(if ours { std::process::id() } else { 0 }, Ordering::Relaxed);
        trace::forked(ours);
    });
}

/// Runs when the program or the library that holds devprof is loaded. Starts nothing.
extern "C" fn constructor() {
    guarded(Cost::Counters, (), || {
        if settings().disabled {
            return;
        }
        let found = instance::find_leader();
        if matches!(found, Found::OtherVersion) {
            report::lost(
                "another version of devprof is in this process already; only that one collects",
            );
            return;
        }
        if journal::is_kept()
            && let Ok(program) = std::env::current_exe()
        {
            journal::note_file(Event::Loaded, &program);
        }
        PROCESS.store(std::process::id(), Ordering::Relaxed);
        host::at_fork(before_fork, after_fork, in_child);
        if matches!(found, Found::Leader) {
            register_exit(at_close);
            // Now, since the order of exit handlers is that of their registration.
            instance::request(Request::AtExit {});
        } else {
            // The others rely on it.
            host::stay(constructor as *const c_void);
            register_exit(at_exit);
            if !host::at_quick_exit(at_exit) {
                report::lost(
                    "cannot register a handler of quick_exit: a program that ends so writes no device counters",
                );
            }
        }
        // The shared library makes itself a tool, so that it hears of what comes and goes.
        if let Some(library) = host::exporting_library(c"OnLoad", OnLoad as *const c_void) {
            IS_LIBRARY.store(true, Ordering::Relaxed);
            let old = host::env("HSA_TOOLS_LIB");
            let added = tool::with_tool(old.as_deref(), library.as_os_str());
            // Otherwise the program has loaded it, perhaps when HSA was up already.
            if added.is_none() || host::is_preloaded(&library) {
                drain::expect();
            }
            if let Some(value) = added {
                host::set_env(c"HSA_TOOLS_LIB", &value);
            }
            // With rocprofiler-register ROCr skips the tools of HSA_TOOLS_LIB when a rocprofiler-sdk tool is there
            // (runtime.cpp, LoadTools), unless this says otherwise. What the user has set stays.
            if host::env(V1_TOOLS).is_none() {
                host::set_env(c"HSA_TOOLS_ROCPROFILER_V1_TOOLS", OsStr::new("1"));
            }
        }
    });
}

/// Runs after all exit handlers.
extern "C" fn destructor() {
    guarded(Cost::Counters, (), || {
        if is_ours() && !is_interrupted() {
            // LLVM's collector may be in the program, too, with fewer records and the same file names.
            if IS_LIBRARY.load(Ordering::Relaxed) {
                drain::place_again();
            }
            trace::end();
        }
    });
}

#[used]
#[unsafe(link_section = ".init_array")]
static CONSTRUCTOR: extern "C" fn() = constructor;

#[used]
#[unsafe(link_section = ".fini_array")]
static DESTRUCTOR: extern "C" fn() = destructor;
