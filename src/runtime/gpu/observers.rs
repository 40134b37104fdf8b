//! The observers of a GPU runtime's calls and changes: two traits, one for profiles and one for the trace. Their methods
//! run on the thread that has made the call, and must not panic.

use super::runtime::{AgentId, ExecutableId};
use crate::support::features::HAS_TRACE;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How a call was observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A tool that the runtime has loaded: it observes everything.
    Tool,
    /// A function of the runtime that devprof interposes. If a tool observes the same call, this one is a duplicate.
    Interposed,
}

/// Observes the events that profiles depend on. A method that is called before a call returns the argument for the method
/// that is called after it.
pub trait DrainObserver: Sync {
    /// The runtime is about to be initialized. If this returns true, [`initialized`](DrainObserver::initialized) gets it.
    fn initializing(&self) -> bool;

    /// The call is over. `was_reported`: the result of [`initializing`](DrainObserver::initializing).
    fn initialized(&self, was_reported: bool, is_success: bool);

    /// The runtime is about to be shut down, but it may stay initialized: it counts its users. If this returns true,
    /// [`shut_down`](DrainObserver::shut_down) must follow.
    fn shutting_down(&self, source: Source) -> bool;

    /// The call is over.
    fn shut_down(&self);

    /// The program uses CUDA: a wrapped function has succeeded for the first time.
    fn cuda_used(&self);

    /// A context of CUDA was created. The driver may hold its locks.
    fn context_created(&self);

    /// Instrumented code of CUDA was loaded. The driver may hold its locks.
    fn code_loaded(&self);

    /// An executable is about to be frozen. Returns the generation for [`frozen`](DrainObserver::frozen).
    fn freezing(&self, source: Source, executable: ExecutableId) -> u64;

    /// An executable was frozen: its kernels can be launched from now on.
    fn frozen(&self, source: Source, executable: ExecutableId, generation: u64);

    /// An executable is about to be destroyed. If this returns a generation, [`destroyed`](DrainObserver::destroyed) must
    /// follow with it.
    fn destroying(&self, source: Source, executable: ExecutableId) -> Option<u64>;

    /// The call is over.
    fn destroyed(&self, executable: ExecutableId, generation: u64, is_success: bool);

    /// A queue was created. `queue`: the address of the `hsa_queue_t`. `callback`: the address of the function for its
    /// errors, or 0.
    fn queue_created(
        &self,
        source: Source,
        queue: usize,
        is_single_producer: bool,
        callback: usize,
    );

    /// A queue is about to be destroyed or inactivated.
    fn queue_destroying(&self, source: Source, queue: usize);
}

/// Observes the events that the trace records.
pub trait TraceObserver: Sync {
    /// The runtime is about to be shut down.
    fn shutting_down(&self);

    /// That call is over, and the runtime may still be initialized.
    fn shut_down(&self);

    /// An executable was frozen: its kernels can be launched from now on.
    fn frozen(&self, executable: ExecutableId);

    /// The program has called a function of CUDA.
    fn api_call_began(&self, call: &ApiCall);

    /// The call is over. `status`: the error code that it returned, 0 for none. `is_own`: it was devprof's own call.
    fn api_call_ended(&self, is_own: bool, status: i32);

    /// The program starts or stops the tool that records it (`cudaProfilerStart`).
    fn profiler_switched(&self, on: bool);

    /// CUDA has created a stream. The driver holds its locks.
    fn stream_created(&self, handle: u64);

    /// A context of CUDA is about to be destroyed.
    fn context_destroying(&self, context: u64);

    /// CUDA has loaded a module into a context. `number`: CUPTI's. The driver holds its locks.
    fn module_loaded(&self, context: u64, number: u32, cubin: &[u8]);

    /// CUDA is about to unload a module, or all modules of a context (`None`). The driver holds its locks.
    fn modules_unloading(&self, context: u64, number: Option<u32>);

    /// CUPTI has begun or filled a buffer of activities.
    fn activities_expected(&self);

    /// An intercept queue of `size` packets was created. Its packets go to the handler that this returns.
    fn queue_created(
        &self,
        agent: AgentId,
        queue: usize,
        size: u32,
    ) -> Option<Box<dyn PacketHandler>>;

    /// The calling thread has reserved `count` slots of a queue for packets, starting at index `first`.
    fn slots_reserved(&self, queue: usize, first: u64, count: u64);

    /// The calling thread is about to change a signal's value.
    fn signal_changing(&self, signal: u64);

    /// The calling thread may change a signal's value, if it is the value that the thread expects.
    fn signal_comparing(&self, signal: u64);

    /// The calling thread has changed a signal's value, which was `old`, after
    /// [`signal_comparing`](TraceObserver::signal_comparing).
    fn signal_changed(&self, signal: u64, old: i64);

    /// A signal is about to be destroyed.
    fn signal_destroying(&self, signal: u64);

    /// The program has read the times of a dispatch. Returns the start and the end to give it instead, in ticks of the
    /// runtime's system clock, if they are not in the signal.
    fn dispatch_time_read(&self, signal: u64) -> Option<(u64, u64)>;

    /// A copy or fill of memory is about to be requested. If this returns a value,
    /// [`copy_requested`](TraceObserver::copy_requested) must follow with it.
    fn copying(&self, call: &CopyCall) -> Option<StartedCopy>;

    /// The call is over.
    fn copy_requested(&self, call: &CopyCall, started: StartedCopy, is_success: bool);
}

static DRAIN: OnceLock<&'static dyn DrainObserver> = OnceLock::new();
static TRACE: OnceLock<&'static dyn TraceObserver> = OnceLock::new();

/// Sets both observers. Only the first call has an effect.
pub fn set(drain: &'static dyn DrainObserver, trace: &'static dyn TraceObserver) {
    DRAIN.get_or_init(|| drain);
    if HAS_TRACE {
        TRACE.get_or_init(|| trace);
    }
}

/// The observer of profiles. `None` before it is set, and if devprof is disabled.
#[inline]
pub fn drain() -> Option<&'static dyn DrainObserver> {
    DRAIN.get().copied()
}

/// The observer of the trace. `None` also in a build without the trace.
#[inline]
pub fn trace() -> Option<&'static dyn TraceObserver> {
    if HAS_TRACE {
        TRACE.get().copied()
    } else {
        None
    }
}

/// A call of a function of CUDA.
#[derive(Clone, Copy, Debug)]
pub struct ApiCall {
    pub function: &'static str,
    /// CUPTI's number of the call.
    pub correlation: u32,
    /// It submits work to a device.
    pub submits: bool,
    /// It submits at most one kernel, and nothing else.
    pub submits_once: bool,
    pub stream: ApiStream,
    /// It is devprof's own call.
    pub is_own: bool,
}

/// The stream in the arguments of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiStream {
    /// There is none, or it is not known.
    Unknown,
    Handle(u64),
    /// As [`ApiStream::Handle`], but 0 is the default stream of the calling thread.
    PerThreadHandle(u64),
}

/// The owner of copied memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    Agent(AgentId),
    /// Memory of the host that the runtime does not know.
    Host,
    Unknown,
}

/// A call of the program that copies or fills memory.
#[derive(Clone, Copy, Debug)]
pub struct CopyCall {
    /// The runtime's function.
    pub function: &'static str,
    pub bytes: u64,
    /// Not of a fill.
    pub source: Owner,
    pub destination: Owner,
    pub is_fill: bool,
    /// The bit of the engine that the program chose, 0 for none.
    pub engine: u32,
    /// The signal that the copy decrements when it is complete. `None`: it is complete when the call returns.
    pub completion: Option<u64>,
}

impl CopyCall {
    /// A copy that is complete when the call returns.
    pub fn new(function: &'static str, bytes: u64, source: Owner, destination: Owner) -> CopyCall {
        CopyCall {
            function,
            bytes,
            source,
            destination,
            is_fill: false,
            engine: 0,
            completion: None,
        }
    }
}

/// The start of a copy, for the end of the call.
#[derive(Clone, Copy, Debug)]
pub struct StartedCopy {
    /// When the function was called, in ticks of the runtime's system clock.
    pub time: u64,
    /// See `trace/hsa/watched_signals.rs`.
    pub watch: Option<u32>,
}

/// A packet of the Architected Queuing Language (HSA Platform System Architecture Specification).
pub type Packet = [u64; 8];

/// Handles the packets of an intercept queue. The runtime calls it on one thread at a time.
pub trait PacketHandler: Send {
    /// Takes a batch of packets with their indices in the program's queue. Returns the packets to write in their place.
    fn take(&mut self, batch: &mut dyn Iterator<Item = (u64, Packet)>) -> &[Packet];

    /// Whether packets may pass unchanged and without [`PacketHandler::take`], if their slots are reserved from now on.
    fn is_idle(&self) -> bool;

    /// The queue was destroyed.
    fn close(self: Box<Self>);
}

/// Whether launches are observed: see [`observes_launches`].
static OBSERVES_LAUNCHES: AtomicBool = AtomicBool::new(true);
static SWITCHES: AtomicU64 = AtomicU64::new(0);

/// Whether [`TraceObserver::slots_reserved`] is called. If not, a launch costs no more than reading this flag.
#[inline]
pub fn observes_launches() -> bool {
    OBSERVES_LAUNCHES.load(Ordering::Relaxed)
}

/// Starts or stops to observe launches. Returns whether they were observed before.
pub fn set_observes_launches(observes: bool) -> bool {
    SWITCHES.fetch_add(1, Ordering::Relaxed);
    OBSERVES_LAUNCHES.swap(observes, Ordering::Relaxed)
}

/// How often [`set_observes_launches`] was called.
pub fn observation_switches() -> u64 {
    SWITCHES.load(Ordering::Relaxed)
}
