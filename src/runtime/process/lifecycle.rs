//! The lifecycle of the GPU runtime, of its executables and of this process. No other module has this state, except for the
//! process that may use GPU runtimes ([`owner`]), which the layers below read.
//!
//! While holding [`STATE`], never wait for a kernel or call HIP, except for the `hipMemcpy` fallback: a thread that
//! holds a lock of HIP may be about to destroy an executable, and waits for STATE.

use crate::amd::hsa_runtime::{self, Hsa};
use crate::amd::queues;
use crate::amd::traced::TracedHsa;
use crate::drain::DrainState;
use crate::drain::kind::{DrainKind, Executables};
use crate::gpu::owner;
pub use crate::gpu::owner::is_owner;
use crate::gpu::runtime::{Error, ExecutableId, IdMap, IdSet, Runtime};
use crate::gpu::traced::TracedRuntimes;
use crate::nvidia::cuda_runtime::{self, Cuda};
use crate::nvidia::traced::TracedCuda;
use crate::support::diagnostics;
use crate::support::features::HAS_CUDA;
use crate::support::settings::settings;
use crate::support::sync::lock;
use crate::sys::threads;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};

/// The process that loaded devprof.
static LOADED_BY: AtomicU32 = AtomicU32::new(0);
/// Something has used [`STATE`] since devprof was loaded.
static WAS_USED: AtomicBool = AtomicBool::new(false);
/// HSA is initialized, or may be, according to hooks and earlier queries. A forked child reads this, because it must not
/// call HSA: another thread of the parent may have been initializing it.
static HSA_MAY_BE_UP: AtomicBool = AtomicBool::new(false);
/// The same for the CUDA driver, which itself forks while it is initialized.
static CUDA_MAY_BE_UP: AtomicBool = AtomicBool::new(false);
/// See [`HsaState::initialized_by`].
static CUDA_INITIALIZED_BY: AtomicU32 = AtomicU32::new(0);
/// An instance of devprof is ROCr's tool, and reports everything.
static TOOL_OBSERVES: AtomicBool = AtomicBool::new(false);
/// See [`was_up`].
static WAS_UP: AtomicBool = AtomicBool::new(false);
/// A function that devprof interposes was called, in some instance.
static INTERPOSITION_WORKS: AtomicBool = AtomicBool::new(false);

/// Held through a drain, so that no executable is destroyed during it whose destruction is observed.
static STATE: LazyLock<Mutex<State>> = LazyLock::new(Mutex::default);
/// A transition is over.
static TRANSITION_OVER: Condvar = Condvar::new();

#[derive(Default)]
struct State {
    hsa: HsaState,
    executables: ExecutableStates,
    /// The thread that ends the process. From then on, only this thread collects: HIP and HSA may be destroyed at any
    /// time.
    ending: Option<u32>,
    drain_states: DrainStates,
}

/// Each GPU runtime has its own: a drain of one says nothing about the code objects of the other.
#[derive(Default)]
struct DrainStates {
    hsa: DrainState,
    cuda: DrainState,
}

impl DrainStates {
    fn of(&mut self, executable: ExecutableId) -> &mut DrainState {
        match executable {
            ExecutableId::Hsa(_) => &mut self.hsa,
            ExecutableId::Cuda(_) => &mut self.cuda,
        }
    }
}

/// A GPU runtime in this process.
#[derive(Clone, Copy)]
pub enum GpuRuntime {
    Hsa(&'static Hsa),
    Cuda(Cuda),
}

impl GpuRuntime {
    /// The runtime that has loaded an executable, if it was found before. Does not search for it, so that it can be called
    /// while holding [`STATE`].
    fn of(executable: ExecutableId) -> Option<GpuRuntime> {
        match executable {
            ExecutableId::Hsa(_) => hsa_runtime::known().map(GpuRuntime::Hsa),
            ExecutableId::Cuda(_) => cuda_runtime::known().map(GpuRuntime::Cuda),
        }
    }

    /// The runtime that has loaded an executable. Searches for it.
    pub fn find(executable: ExecutableId) -> Option<Result<GpuRuntime, Error>> {
        match executable {
            ExecutableId::Hsa(_) => GpuRuntime::find_hsa(),
            ExecutableId::Cuda(_) => GpuRuntime::find_cuda(),
        }
    }

    pub fn find_hsa() -> Option<Result<GpuRuntime, Error>> {
        Some(hsa_runtime::find()?.map(GpuRuntime::Hsa))
    }

    pub fn find_cuda() -> Option<Result<GpuRuntime, Error>> {
        Some(cuda_runtime::find()?.map(GpuRuntime::Cuda))
    }

    pub fn requests(&self) -> &dyn Runtime {
        match self {
            GpuRuntime::Hsa(hsa) => *hsa,
            GpuRuntime::Cuda(cuda) => cuda,
        }
    }
}

/// The same runtimes, for a trace.
pub const TRACED: TracedRuntimes = TracedRuntimes {
    clock: &TracedHsa,
    hsa: &TracedHsa,
    cuda: &TracedCuda,
};

#[derive(Default)]
struct HsaState {
    /// Whether HSA is initialized, as reported by ROCr to its tool.
    is_up: Option<bool>,
    /// ROCr will report its initialization to a tool. Until then devprof must not query it: during its initialization,
    /// ROCr 7.2.4 divides by a frequency that is still 0.
    is_expected: bool,
    /// The process in which devprof has observed that HSA is initialized. In a forked child it must be that child: if HSA is
    /// initialized nevertheless, the parent has done it, so HSA must not be called.
    initialized_by: u32,
    /// Threads that are about to initialize HSA or to shut it down.
    transitions: Vec<u32>,
    /// devprof holds a reference to HSA (`hsa_init`).
    is_held: bool,
}

#[derive(Default)]
struct ExecutableStates {
    /// The generation of each frozen executable whose destruction will be reported. The ids of destroyed
    /// executables are reused; generations are not.
    observed: IdMap<ExecutableId, u64>,
    /// The last generation.
    generation: u64,
    /// Executables that a thread is destroying.
    destroying: IdSet<ExecutableId>,
}

impl ExecutableStates {
    fn view(&self) -> Executables<'_> {
        Executables {
            observed: &self.observed,
            destroying: &self.destroying,
        }
    }

    /// 0 if the executable is not observed.
    fn generation_of(&self, executable: ExecutableId) -> u64 {
        self.observed.get(&executable).copied().unwrap_or(0)
    }
}

impl State {
    /// Whether another thread ends the process.
    fn is_too_late(&self, kind: DrainKind) -> bool {
        let ends_elsewhere = |ending| ending != threads::thread_id();
        kind.is_complete() && self.ending.is_some_and(ends_elsewhere)
    }

    /// An executable was destroyed.
    fn remove(&mut self, executable: ExecutableId) {
        self.executables.observed.remove(&executable);
        self.executables.destroying.remove(&executable);
        let runtime = GpuRuntime::of(executable);
        let runtime = runtime.as_ref().map(GpuRuntime::requests);
        let drain_state = self.drain_states.of(executable);
        drain_state.remove(executable, runtime);
    }

    /// CUDA has loaded these modules, and will report their destruction.
    fn observe(&mut self, modules: &[ExecutableId]) {
        let ExecutableStates {
            observed,
            generation,
            ..
        } = &mut self.executables;
        observed.retain(|id, _| match id {
            ExecutableId::Hsa(_) => true,
            ExecutableId::Cuda(_) => modules.contains(id),
        });
        for &module in modules {
            observed.entry(module).or_insert_with(|| {
                *generation += 1;
                *generation
            });
        }
    }

    /// Whether HSA is initialized, if that is known without calling HSA.
    fn known_hsa_state(&self) -> Option<bool> {
        if is_inherited(self.hsa.initialized_by) {
            Some(false)
        } else {
            self.hsa.is_up
        }
    }

    fn hold(&mut self, hsa: &Hsa) {
        if self.hsa.is_held || self.hsa.is_up.is_some() {
            return;
        }
        // If this fails, the current drain can still succeed, and perhaps later ones.
        match hsa.api.hold() {
            Ok(()) => self.hsa.is_held = true,
            Err(error) => diagnostics::note(settings().verbose, error),
        }
    }
}

#[inline(never)]
fn lock_state() -> MutexGuard<'static, State> {
    if !WAS_USED.load(Ordering::Relaxed) {
        WAS_USED.store(true, Ordering::SeqCst);
    }
    lock(&STATE)
}

fn with_state<T>(work: impl FnOnce(&mut State) -> T) -> T {
    work(&mut lock_state())
}

/// HSA belongs to this process from now on. To be called by the constructor.
pub fn set_owner() {
    // Initialized here, so that no thread can be initializing it during a fork.
    LazyLock::force(&STATE);
    LOADED_BY.store(std::process::id(), Ordering::Relaxed);
    owner::set(std::process::id());
}

/// The constructor is over. `is_used`: a forked child needs [`in_child`] in any case.
pub fn constructed(is_used: bool) {
    WAS_USED.store(is_used, Ordering::SeqCst);
}

/// Whether a GPU runtime that is initialized belongs to the parent of this forked child. `initialized_by`: the process in
/// which devprof has observed its initialization.
fn is_inherited(initialized_by: u32) -> bool {
    let owner = owner::get();
    owner != LOADED_BY.load(Ordering::Relaxed) && (owner == 0 || owner != initialized_by)
}

fn cuda_is_inherited() -> bool {
    is_inherited(CUDA_INITIALIZED_BY.load(Ordering::Relaxed))
}

/// Whether an instance of devprof is ROCr's tool.
pub fn tool_observes() -> bool {
    TOOL_OBSERVES.load(Ordering::Relaxed)
}

/// ROCr has loaded an instance of devprof as its tool: HSA is initialized.
pub fn tool_loaded() {
    TOOL_OBSERVES.store(true, Ordering::Relaxed);
    WAS_UP.store(true, Ordering::Relaxed);
    HSA_MAY_BE_UP.store(true, Ordering::Relaxed);
    with_state(|state| {
        state.hsa.is_up = Some(true);
        state.hsa.initialized_by = owner::get();
    });
    queues::clear();
    queues::set_sees_all(true);
}

/// ROCr has unloaded its tool: HSA is shut down. When it is initialized again, ROCr may not load the tool again.
pub fn tool_unloaded() {
    TOOL_OBSERVES.store(false, Ordering::Relaxed);
    queues::set_sees_all(false);
    with_state(|state| {
        state.hsa.is_up = Some(false);
        state.drain_states.hsa.forget_copies();
    });
}

/// ROCr will load devprof as its tool.
pub fn expect_tool() {
    with_state(|state| state.hsa.is_expected = true);
}

/// ROCr has not loaded devprof as its tool, or its tables are unknown: from now on devprof queries HSA's state.
pub fn do_not_expect_tool() {
    with_state(|state| {
        state.hsa.is_expected = false;
        state.hsa.is_up = None;
    });
}

/// A function that devprof interposes was called.
pub fn interposed_function_called() {
    INTERPOSITION_WORKS.store(true, Ordering::Relaxed);
}

/// Whether the destruction of executables is reported.
pub fn destruction_is_observed() -> bool {
    tool_observes() || INTERPOSITION_WORKS.load(Ordering::Relaxed)
}

/// The calling thread is about to initialize HSA. Until [`end_transition`] nothing drains.
pub fn begin_transition() {
    // Before the lock is taken: a fork that finds it taken finds this, too.
    HSA_MAY_BE_UP.store(true, Ordering::SeqCst);
    // If HSA is initialized before a forked child's first call, the parent has done it.
    let is_new = with_state(|state| is_inherited(state.hsa.initialized_by))
        && !may_be_initialized(&hsa_runtime::find());
    with_state(|state| {
        if is_new {
            state.hsa.initialized_by = owner::get();
        }
        state.hsa.transitions.push(threads::thread_id());
    });
}

/// Whether HSA is initialized, or a query of it fails.
fn may_be_initialized(hsa: &Option<Result<&Hsa, Error>>) -> bool {
    match hsa {
        Some(Ok(hsa)) => hsa.api.is_initialized().unwrap_or(true),
        _ => false,
    }
}

/// The calling thread is about to shut HSA down. Releases the memory and signals of drains. Until [`end_transition`] nothing
/// drains.
pub fn begin_shutdown() {
    // Found before the lock is taken: the search takes the dynamic loader's lock.
    let hsa = hsa_runtime::find();
    with_state(|state| {
        if let Some(Ok(hsa)) = hsa {
            hsa.release();
        }
        state.hsa.transitions.push(threads::thread_id());
    });
    queues::end_waits();
}

/// The call after [`begin_transition`] or [`begin_shutdown`] has returned. HSA may still be initialized after a
/// shutdown: it counts its users.
pub fn end_transition() {
    with_state(|state| {
        let transitions = &mut state.hsa.transitions;
        let this = threads::thread_id();
        if let Some(n) = transitions.iter().position(|&thread| thread == this) {
            transitions.swap_remove(n);
        }
    });
    TRANSITION_OVER.notify_all();
    update_hsa_may_be_up();
}

/// Sets [`HSA_MAY_BE_UP`], unless a thread is initializing HSA or shutting it down.
fn update_hsa_may_be_up() {
    let hsa = hsa_runtime::find();
    with_state(|state| {
        if state.hsa.transitions.is_empty() {
            let known = state.known_hsa_state();
            let is_up = known.unwrap_or_else(|| may_be_initialized(&hsa));
            HSA_MAY_BE_UP.store(is_up, Ordering::SeqCst);
        }
    });
}

/// A shutdown is over.
pub fn end_shutdown() {
    end_transition();
    let is_up = with_state(|state| state.known_hsa_state()).or_else(query_hsa);
    if is_up == Some(false) {
        with_state(|state| state.drain_states.hsa.forget_copies());
    }
    queues::allow_waits(is_up.unwrap_or(false));
}

/// Whether HSA is initialized. During a transition it is not.
pub fn hsa_is_up() -> bool {
    let known = with_state(|state| {
        if state.hsa.transitions.is_empty() {
            state.known_hsa_state()
        } else {
            Some(false)
        }
    });
    known.unwrap_or_else(|| query_hsa().unwrap_or(false))
}

/// Queries whether HSA is initialized, or a thread is initializing it. `None` if the query fails.
pub fn query_hsa() -> Option<bool> {
    if with_state(|state| is_inherited(state.hsa.initialized_by)) {
        return Some(false);
    }
    match hsa_runtime::find() {
        Some(Ok(hsa)) => hsa.api.is_initialized().ok(),
        _ => Some(false),
    }
}

/// Whether the CUDA driver is initialized.
pub fn cuda_is_up() -> bool {
    HAS_CUDA
        && !cuda_is_inherited()
        && matches!(cuda_runtime::find(), Some(Ok(cuda)) if cuda.is_up())
}

/// The CUDA driver is being initialized, or was.
pub fn cuda_initializing() {
    CUDA_INITIALIZED_BY.store(owner::get(), Ordering::Relaxed);
    CUDA_MAY_BE_UP.store(true, Ordering::SeqCst);
    WAS_USED.store(true, Ordering::SeqCst);
}

/// Keeps HSA initialized until the process ends, unless a tool observes its shutdown. HSA must be initialized.
pub fn hold_hsa() {
    if let Some(Ok(hsa)) = hsa_runtime::find() {
        with_state(|state| state.hold(hsa));
    }
}

/// An executable was frozen, and its destruction will be reported. `generation`: the generation before the call. False if
/// the call was already reported.
pub fn executable_frozen(executable: ExecutableId, generation: u64) -> bool {
    HSA_MAY_BE_UP.store(true, Ordering::SeqCst);
    with_state(|state| {
        // Meanwhile another thread may have reported the destruction of an executable with the same id.
        let now = state.executables.generation_of(executable);
        if now != generation && now != 0 {
            return false;
        }
        // An earlier executable may have had the id, and its destruction was not reported, or not yet.
        state.remove(executable);
        state.executables.generation += 1;
        let generation = state.executables.generation;
        state.executables.observed.insert(executable, generation);
        state.hsa.initialized_by = owner::get();
        true
    })
}

/// An executable is about to be destroyed. No drain accesses it until [`executable_destroyed`].
pub fn executable_destroying(executable: ExecutableId) {
    with_state(|state| state.executables.destroying.insert(executable));
}

/// The generation of an executable, for [`executable_destroyed`]. 0 if it is not observed.
pub fn generation_of(executable: ExecutableId) -> u64 {
    with_state(|state| state.executables.generation_of(executable))
}

/// The call that destroys an executable is over. `generation`: the generation before the call.
pub fn executable_destroyed(executable: ExecutableId, generation: u64, is_success: bool) {
    with_state(|state| {
        if state.executables.generation_of(executable) != generation {
            // The id was already reused.
        } else if is_success {
            state.remove(executable);
        } else {
            state.executables.destroying.remove(&executable);
        }
    });
}

/// Whether an executable with counters is loaded whose destruction will not be reported.
pub fn has_unobserved_counters() -> bool {
    with_state(|state| {
        state
            .drain_states
            .hsa
            .has_unobserved(state.executables.view())
    })
}

/// The process ends: from now on only the calling thread collects.
pub fn begin_ending() {
    with_state(|state| state.ending = Some(threads::thread_id()));
}

/// At exit: if another thread may be in the first call of `hsa_init`, waits until that call is over. At the time limit, HSA
/// counts as not initialized: no kernel has run.
pub fn await_initialization() {
    // A drain waits for transitions that are reported.
    let is_known = with_state(|state| {
        let hsa = &state.hsa;
        state.known_hsa_state().is_some() || hsa.is_held || !hsa.transitions.is_empty()
    });
    if is_known || query_hsa() == Some(false) {
        return;
    }
    if let Some(Ok(hsa)) = hsa_runtime::find() {
        let held = hsa.hold_within(settings().sync_limit);
        with_state(|state| match held {
            Some(Ok(())) => state.hsa.is_held = true,
            // In a program that contains ROCr, the call may reach devprof's own function.
            Some(Err(_)) => {}
            None => state.hsa.is_up = Some(false),
        });
    }
}

/// Whether the process has begun its last drain.
pub fn is_ending() -> bool {
    with_state(|state| state.ending.is_some())
}

/// See [`DrainState::rewrite_replaced`].
pub fn rewrite_replaced_files() {
    with_state(|state| {
        state.drain_states.hsa.rewrite_replaced();
        if HAS_CUDA {
            state.drain_states.cuda.rewrite_replaced();
        }
    });
}

/// Whether a GPU runtime is initialized, or may be, without a lock and without calling it.
pub fn may_be_up() -> bool {
    HSA_MAY_BE_UP.load(Ordering::SeqCst) || CUDA_MAY_BE_UP.load(Ordering::SeqCst)
}

/// In the child of a fork: if the parent has not used anything, all state is as if the child had loaded devprof. Returns
/// whether that is so.
pub fn is_new_in_child() -> bool {
    let is_new = !WAS_USED.load(Ordering::SeqCst);
    if is_new {
        owner::set(std::process::id());
    }
    is_new
}

/// In the child of a fork. `is_owner`: no GPU runtime was initialized. One that was belongs to the parent, and the child must
/// not use it. devprof may not have observed that it was, so it uses a runtime only if it observes that the child initializes
/// it. Returns whether the child may use GPU runtimes.
pub fn in_child(mut is_owner: bool) -> bool {
    // If a thread that the child does not have holds the lock, the child never drains.
    if let Ok(mut state) = STATE.try_lock() {
        let parents = std::mem::take(&mut *state);
        if let Some(hsa) = hsa_runtime::known() {
            hsa.forget_parent();
        }
        state.hsa.is_expected = parents.hsa.is_expected;
        std::mem::forget(parents);
    } else {
        is_owner = false;
    }
    queues::clear();
    threads::forget_thread_id();
    owner::set(if is_owner { std::process::id() } else { 0 });
    is_owner
}

/// The state during a drain.
pub struct Entered {
    state: MutexGuard<'static, State>,
    runtime: GpuRuntime,
}

impl Entered {
    /// The parts of the state that a drain needs.
    pub fn parts(&mut self) -> (Executables<'_>, &mut DrainState) {
        let state = &mut *self.state;
        let drain_state = match self.runtime {
            GpuRuntime::Hsa(_) => &mut state.drain_states.hsa,
            GpuRuntime::Cuda(_) => &mut state.drain_states.cuda,
        };
        (state.executables.view(), drain_state)
    }

    /// Keeps the runtime initialized, if it can be shut down.
    pub fn hold(&mut self) {
        if let GpuRuntime::Hsa(hsa) = self.runtime {
            self.state.hold(hsa);
        }
    }
}

/// Locks the state for a drain. `None` if the runtime is not initialized, so there is nothing to drain.
pub fn enter(runtime: GpuRuntime, kind: DrainKind) -> Result<Option<Entered>, Error> {
    let state = match runtime {
        GpuRuntime::Hsa(hsa) => enter_hsa(hsa, kind)?,
        GpuRuntime::Cuda(cuda) => enter_cuda(cuda, kind),
    };
    Ok(state.map(|state| Entered { state, runtime }))
}

fn enter_cuda(cuda: Cuda, kind: DrainKind) -> Option<MutexGuard<'static, State>> {
    if cuda_is_inherited() {
        return None;
    }
    let mut state = lock_state();
    if state.is_too_late(kind) || !cuda.is_up() {
        return None;
    }
    state.observe(&cuda.executables());
    Some(state)
}

/// Waits for transitions of other threads: HSA's functions must not be called during them. No thread that reports its
/// transitions begins one while the state is locked.
fn enter_hsa(hsa: &Hsa, kind: DrainKind) -> Result<Option<MutexGuard<'static, State>>, Error> {
    let this = threads::thread_id();
    let is_in_transition = |state: &mut State| {
        let transitions = &state.hsa.transitions;
        !transitions.is_empty() && !transitions.contains(&this)
    };
    let (state, _) = TRANSITION_OVER
        .wait_timeout_while(lock_state(), settings().sync_limit, is_in_transition)
        .unwrap_or_else(PoisonError::into_inner);
    // Everything was drained before the shutdown.
    if !state.hsa.transitions.is_empty() || state.is_too_late(kind) {
        return Ok(None);
    }
    let is_up = match state.known_hsa_state() {
        Some(is_up) => is_up,
        None if state.hsa.is_expected && state.ending.is_none() => false,
        None => hsa.api.is_initialized()?,
    };
    if is_up {
        WAS_UP.store(true, Ordering::Relaxed);
        HSA_MAY_BE_UP.store(true, Ordering::Relaxed);
    }
    Ok(is_up.then_some(state))
}

/// Whether HSA is known to have been initialized.
pub fn was_up() -> bool {
    WAS_UP.load(Ordering::Relaxed)
}
