//! Events of a GPU runtime: one enum and one callback for all ways in which devprof observes the runtime.

use super::runtime::{AgentId, ExecutableId};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How an event was observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A tool that the runtime has loaded: it observes everything.
    Tool,
    /// A function of the runtime that devprof interposes. If a tool observes the same, the event is a duplicate.
    Interposed,
}

/// Something that a GPU runtime does, or is about to do, on the calling thread. The callback writes its answer to the
/// references.
pub enum Event<'a> {
    /// The runtime is about to be initialized. `is_accepted`: [`Event::Initialized`] must follow.
    Initializing { is_accepted: &'a mut bool },
    /// The call is over. `was_accepted`: the answer to [`Event::Initializing`].
    Initialized {
        was_accepted: bool,
        is_success: bool,
    },
    /// The runtime is about to be shut down, but it may stay initialized: it counts its users. `is_accepted`:
    /// [`Event::ShutDown`] must follow.
    ShuttingDown {
        source: Source,
        is_accepted: &'a mut bool,
    },
    /// The call is over.
    ShutDown { source: Source },
    /// Whether this process may use the GPU runtime. A forked child may not.
    IsOwner { is_owner: &'a mut bool },
    /// The program uses CUDA: a wrapped function has succeeded for the first time.
    CudaUsed,
    /// A context of CUDA was created. The driver may hold its locks.
    ContextCreated,
    /// Instrumented code of CUDA was loaded. The driver may hold its locks.
    CodeLoaded,
    /// The program has called a function of CUDA.
    ApiCallBegan { call: &'a ApiCall },
    /// The call is over. `status`: the error code that it returned, 0 for none. `is_own`: it was devprof's own call.
    ApiCallEnded { is_own: bool, status: i32 },
    /// The program starts or stops the tool that records it (`cudaProfilerStart`).
    ProfilerSwitched { on: bool },
    /// CUDA has created a stream. The driver holds its locks.
    StreamCreated { handle: u64 },
    /// A context of CUDA is about to be destroyed.
    ContextDestroying { context: u64 },
    /// CUPTI has begun or filled a buffer of activities.
    ActivitiesExpected,
    /// An executable is about to be frozen. `generation`: for [`Event::Frozen`].
    Freezing {
        source: Source,
        executable: ExecutableId,
        generation: &'a mut u64,
    },
    /// An executable was frozen: its kernels can be launched from now on.
    Frozen {
        source: Source,
        executable: ExecutableId,
        generation: u64,
    },
    /// An executable is about to be destroyed. `generation`: [`Event::Destroyed`] must follow, with this value.
    Destroying {
        source: Source,
        executable: ExecutableId,
        generation: &'a mut Option<u64>,
    },
    /// The call is over.
    Destroyed {
        executable: ExecutableId,
        generation: u64,
        is_success: bool,
    },
    /// A queue was created. `queue`: the address of the `hsa_queue_t`. `callback`: that of the function for its errors, or 0.
    QueueCreated {
        source: Source,
        queue: usize,
        is_single_producer: bool,
        callback: usize,
    },
    /// A queue is about to be destroyed or inactivated.
    QueueDestroying { source: Source, queue: usize },
    /// An intercept queue was created. Its packets go to `handler` if there is one.
    InterceptQueueCreated {
        agent: AgentId,
        queue: usize,
        /// Packets.
        size: u32,
        handler: &'a mut Option<Box<dyn PacketHandler>>,
    },
    /// The calling thread has reserved `count` slots of a queue for packets, starting at index `first`.
    SlotsReserved {
        queue: usize,
        first: u64,
        count: u64,
    },
    /// The calling thread is about to change a signal's value.
    SignalChanging { signal: u64 },
    /// The calling thread may change a signal's value, if it is what the thread expects.
    SignalComparing { signal: u64 },
    /// The calling thread has changed a signal's value, which was `old`, after [`Event::SignalComparing`].
    SignalChanged { signal: u64, old: i64 },
    /// A signal is about to be destroyed.
    SignalDestroying { signal: u64 },
    /// The program reads the times of a dispatch. `time`: start and end, in ticks of the runtime's system clock, if
    /// they are not in the signal.
    DispatchTimeRead {
        signal: u64,
        time: &'a mut Option<(u64, u64)>,
    },
    /// The program is about to request a copy or fill of memory. `started`: [`Event::CopyRequested`] must follow, with
    /// this value.
    Copying {
        call: &'a CopyCall,
        started: &'a mut Option<StartedCopy>,
    },
    /// The call is over.
    CopyRequested {
        call: &'a CopyCall,
        started: StartedCopy,
        is_success: bool,
    },
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

/// What the handler of [`Event::Copying`] needs when the call is over.
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

/// Whether [`Event::SlotsReserved`] is reported. If not, a launch costs no more than reading this flag.
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

static CALLBACK: OnceLock<fn(Event<'_>)> = OnceLock::new();

/// Sets the callback for all events, which must not panic. Only the first call has an effect.
pub fn set_callback(callback: fn(Event<'_>)) {
    CALLBACK.get_or_init(|| callback);
}

/// Reports an event. Without a callback nothing happens.
#[inline]
pub fn report(event: Event<'_>) {
    if let Some(callback) = CALLBACK.get() {
        callback(event);
    }
}
