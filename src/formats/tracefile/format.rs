//! The format of a trace. All values are little endian.
//!
//! The file begins with a page for the header ([`Header`], then [`Counter`]s). Records of [`RECORD_SIZE`] bytes follow,
//! each with its own checksum. A record is written once and never changes, so that the file can be read while it is
//! written, and after its writer was killed. A record of zeros was not written yet: the file grows by many records at a
//! time, and is truncated to the written ones when it is closed.
//!
//! A record comes after the records whose ids it contains: a dispatch after its kernel and its stream, a kernel after
//! its name. The only exception is the record of an API call, which is written when the call returns, before or after
//! its dispatches and copies.
//!
//! Readers reject files with a later version. A compatible extension can use the reserved bytes, which are 0 in this
//! version, or new kinds of records, which readers skip and count.
//!
//! Version 2 added streams, copies, markers, names, pauses of the recording ([`Recording`]), CPUs among the agents, and
//! the counters after [`Count::Closed`]. In version 1 the bytes of its fields are reserved, and therefore 0.

use zerocopy::byteorder::little_endian::{I32, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// First bytes of the file.
pub const MAGIC: [u8; 8] = *b"DEVPROFT";
/// The version of the format that this crate describes.
pub const VERSION: u32 = 2;
/// The oldest version that can be read.
pub const OLDEST_VERSION: u32 = 1;
/// Size of everything before the first record, in bytes.
pub const HEADER_SIZE: usize = 4096;
/// Size of a record in bytes.
pub const RECORD_SIZE: usize = 128;
/// Offset of the first counter in the file, in bytes.
pub const COUNTERS: usize = 128;

macro_rules! plain {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $kind:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
        #[repr(C)]
        pub struct $name { $($(#[$field_doc])* pub $field: $kind,)* }
    };
}

plain! {
    /// The beginning of the file.
    Header {
        magic: [u8; 8],
        version: U32,
        /// [`HEADER_SIZE`].
        header_size: U32,
        /// [`RECORD_SIZE`].
        record_size: U32,
        /// Id of the process that wrote the file.
        pid: U32,
        /// Ticks per second of HSA's system clock; nanoseconds of CLOCK_BOOTTIME in a process without HSA. All times are in its ticks, unless their record has a flag for
        /// another clock.
        frequency: U64,
        /// The system clock when the file was created.
        started: U64,
        /// The same time in nanoseconds since 1970 (UTC).
        started_unix: U64,
        /// When the process was created, in nanoseconds of CLOCK_BOOTTIME: the same if it executes another program. 0 if unknown.
        process_started: U64,
        /// The inode of the process's PID namespace. 0 if unknown.
        pid_namespace: U64,
        reserved: [u8; 60],
        /// CRC-32 (IEEE) of all preceding bytes. [`Header::page`] computes it.
        crc: U32,
    }
}

plain! {
    /// A number that the writer changes while the file is open. It is valid if `check` is its complement.
    Counter {
        value: U64,
        check: U64,
    }
}

/// The counters, in the order of the file. A record is dropped if there is no space for it in the file, or in the
/// memory between the program's thread and the writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// Number of complete records in the file. More records can follow, written by a writer that is still running or
    /// was killed. A file with fewer records is truncated.
    Records,
    /// Dispatches that were dropped for lack of space.
    DroppedDispatches,
    /// API calls that were dropped for lack of space.
    DroppedCalls,
    /// Texts, kernels, queues, agents, streams, processes and states of the recording that were dropped for lack of
    /// space.
    DroppedOthers,
    /// Packets of a type that devprof does not know. They were submitted, but not recorded.
    UnknownPackets,
    /// 1 if the writer closed the file.
    Closed,
    /// Copies and fills that were dropped for lack of space. Since version 2.
    DroppedCopies,
    /// Markers and names ([`Name`]) that were dropped for lack of space. Since version 2.
    DroppedMarkers,
}

impl Count {
    pub const ALL: [Count; 8] = [
        Count::Records,
        Count::DroppedDispatches,
        Count::DroppedCalls,
        Count::DroppedOthers,
        Count::UnknownPackets,
        Count::Closed,
        Count::DroppedCopies,
        Count::DroppedMarkers,
    ];

    /// The version that added the counter.
    pub fn since(self) -> u32 {
        match self {
            Count::DroppedCopies | Count::DroppedMarkers => 2,
            _ => 1,
        }
    }

    /// Offset of its [`Counter`] in the file, in bytes.
    pub fn offset(self) -> usize {
        COUNTERS + self as usize * size_of::<Counter>()
    }
}

impl Counter {
    pub fn new(value: u64) -> Counter {
        Counter {
            value: value.into(),
            check: (!value).into(),
        }
    }

    /// The value. `None` if it is damaged.
    pub fn get(&self) -> Option<u64> {
        (self.value.get() == !self.check.get()).then_some(self.value.get())
    }
}

/// Kinds of records ([`Head::kind`]).
pub mod kind {
    pub const DISPATCH: u16 = 1;
    pub const CALL: u16 = 2;
    pub const TEXT: u16 = 3;
    pub const KERNEL: u16 = 4;
    pub const AGENT: u16 = 5;
    pub const QUEUE: u16 = 6;
    pub const PROCESS: u16 = 7;
    pub const COPY: u16 = 8;
    pub const MARKER: u16 = 9;
    pub const STREAM: u16 = 10;
    pub const NAME: u16 = 11;
    pub const RECORDING: u16 = 12;
}

/// Flags of a [`Dispatch`]. A [`MemoryCopy`] has the flags of its clock, [`UNFINISHED`](flag::UNFINISHED),
/// [`NO_CALL`](flag::NO_CALL) and [`MOVED`](flag::MOVED); a [`Marker`] has `UNFINISHED`; a [`Kernel`] has
/// [`NO_REGISTERS`](flag::NO_REGISTERS).
pub mod flag {
    /// Mask of the clock of `start` and `end`.
    pub const CLOCK: u16 = 3;
    /// The system clock. HSA translated the times from the agent's clock.
    pub const CLOCK_SYSTEM: u16 = 0;
    /// The system clock. The times were computed from the agent's ticks and the frequencies of both clocks, because
    /// HSA's translation was missing or not between submission and observation.
    pub const CLOCK_SCALED: u16 = 1;
    /// The agent's clock ([`super::Agent::frequency`]). Its relation to the system clock is unknown; durations are
    /// correct.
    pub const CLOCK_AGENT: u16 = 2;
    /// The dispatch or copy has no times: `start` and `end` are 0.
    pub const CLOCK_NONE: u16 = 3;
    /// Its completion was not observed: it was still running when the process ended or its queue was destroyed. It has
    /// no times.
    pub const UNFINISHED: u16 = 4;
    /// No recorded API call submitted it; `correlation` is 0.
    pub const NO_CALL: u16 = 8;
    /// The numbers of registers are unknown.
    pub const NO_REGISTERS: u16 = 16;
    /// A vendor-specific dispatch packet.
    pub const VENDOR: u16 = 32;
    /// `start` and `end` were shifted by the same time, at most a millisecond, to be between submission and
    /// observation.
    pub const MOVED: u16 = 64;
}

plain! {
    /// The first field of every record.
    Head {
        /// CRC-32 (IEEE) of the rest of the record.
        crc: U32,
        /// See [`kind`].
        kind: U16,
        /// See [`flag`].
        flags: U16,
        id: U64,
    }
}

plain! {
    /// A kernel dispatch. Ids start at 1. Within a queue, they are in the order in which completions were observed,
    /// which is the order of submission unless kernels overtake each other.
    Dispatch {
        head: Head,
        /// Correlation id: the id of the API call that submitted it, or 0.
        correlation: U64,
        /// When the packet was written, or CUDA's function was called (system clock).
        submit: U64,
        start: U64,
        end: U64,
        /// When its completion was observed (system clock).
        observed: U64,
        agent: U32,
        queue: U32,
        /// The thread that wrote the packet (`gettid`).
        thread: U32,
        /// 0 if its code object is unknown.
        kernel: U32,
        /// Work-items (threads); `u32::MAX` if there are more.
        grid: [U32; 3],
        /// Work-items (threads).
        workgroup: [U16; 3],
        reserved0: U16,
        /// LDS (shared memory) per workgroup, in bytes.
        lds: U32,
        /// Scratch (local) memory per work-item, in bytes.
        scratch: U32,
        /// Vector registers per work-item; registers per thread for CUDA.
        vgprs: U16,
        /// Accumulation vector registers per work-item.
        accum_vgprs: U16,
        /// Scalar registers per wave.
        sgprs: U16,
        reserved1: [u8; 2],
        /// Id of the [`Stream`]. 0 if no API call named it. Since version 2.
        stream: U32,
        reserved2: [u8; 16],
    }
}

plain! {
    /// An API call of the program. Its id is the correlation id of its dispatches. Times are of the system clock.
    Call {
        head: Head,
        start: U64,
        end: U64,
        /// The thread that called (`gettid`).
        thread: U32,
        /// Id of a text: the function's name.
        name: U32,
        /// The result of the call (`hipError_t`, `cudaError_t`, `CUresult`). 0 if the function does not return an error code.
        status: I32,
        /// Id of the [`Stream`] in its arguments, 0 for none. Since version 2.
        stream: U32,
        reserved: [u8; 80],
    }
}

/// Maximum number of bytes of a text in one record.
pub const PIECE: usize = 104;

plain! {
    /// A piece of a text. The pieces of a text follow each other in order.
    Text {
        head: Head,
        /// Length of the complete text in bytes.
        length: U32,
        /// Offset of this piece in the text, in bytes.
        offset: U32,
        bytes: [u8; PIECE],
    }
}

plain! {
    /// A kernel of a code object on one agent. Kernels of one name in several code objects have several records.
    Kernel {
        head: Head,
        /// Address of its kernel descriptor (`kernel_object` of the dispatch packet) where it was first loaded. 0 for CUDA.
        object: U64,
        /// Id of a text: the symbol's name, mangled.
        name: U32,
        agent: U32,
        /// Size of its arguments in bytes. 0 for CUDA.
        kernarg: U32,
        /// Static LDS (shared memory) in bytes.
        lds: U32,
        /// Static scratch (local) memory per work-item, in bytes.
        scratch: U32,
        vgprs: U16,
        accum_vgprs: U16,
        sgprs: U16,
        reserved0: [u8; 2],
        /// Id of a text: the build ID of its code object, in lower-case hexadecimal. It is the description of the note
        /// `NT_GNU_BUILD_ID`, or for CUDA the digest of the cubin (`fatbin::CubinId`). 0 if it is unknown, and in traces of
        /// earlier builds. Older readers ignore it.
        build_id: U32,
        reserved: [u8; 72],
    }
}

plain! {
    /// An agent: a GPU, or, since version 2, a CPU that is the source or destination of a copy. Its id is its index in
    /// HSA's order of all agents. CUDA's devices follow those, in the order of their numbers.
    Agent {
        head: Head,
        /// Ticks per second of its clock.
        frequency: U64,
        /// Id of a text: the target's name, such as `gfx1100` or `sm_90`.
        name: U32,
        /// Id of a text: the product's name. 0 if it is unknown.
        product: U32,
        /// `HSA_AGENT_INFO_NODE`, or CUDA's number of the device.
        node: U32,
        /// `HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT`, or streaming multiprocessors.
        compute_units: U32,
        /// See [`agent`].
        what: U32,
        /// How many agents of its type precede it in the list of its runtime, plus 1. 0 in traces of earlier builds. Of a
        /// GPU it is one more than HIP's or CUDA's number, unless `HIP_VISIBLE_DEVICES` changes HIP's.
        number: U32,
        reserved: [u8; 80],
    }
}

/// Types of agents ([`Agent::what`]).
pub mod agent {
    pub const GPU: u32 = 0;
    pub const CPU: u32 = 1;
}

plain! {
    /// A queue of HSA, or a stream of CUDA as the device executes it. Ids start at 1, in the order of creation, or of the
    /// first kernel.
    Queue {
        head: Head,
        /// When it was created (system clock).
        created: U64,
        agent: U32,
        /// Capacity in packets, 0 for CUDA.
        size: U32,
        reserved: [u8; 96],
    }
}

plain! {
    /// The process that wrote the file. The id is its process id.
    Process {
        head: Head,
        /// Process id of its parent.
        parent: U32,
        /// Id of a text: the host's name.
        host: U32,
        /// Id of a text: the command line, with spaces between the arguments.
        command: U32,
        reserved: [u8; 100],
    }
}

plain! {
    /// A copy or fill of memory by a function of HSA or CUDA. Ids start at 1; they are not ids of dispatches. (HIP also copies
    /// and fills with kernels, which are dispatches.) Since version 2.
    MemoryCopy {
        head: Head,
        /// Correlation id: the id of the API call that submitted it, or 0.
        correlation: U64,
        /// When the function was called (system clock).
        submit: U64,
        start: U64,
        end: U64,
        /// When its completion was observed (system clock).
        observed: U64,
        /// Bytes.
        size: U64,
        /// The agent that owns the source, or [`NO_AGENT`].
        source: U32,
        /// The agent that owns the destination, or [`NO_AGENT`].
        destination: U32,
        /// The thread that called (`gettid`).
        thread: U32,
        /// Id of the [`Stream`], 0 if no API call named it.
        stream: U32,
        /// See [`direction`].
        direction: U32,
        /// The bit of the SDMA engine that the program chose (`hsa_amd_sdma_engine_id_t`), 0 if HSA chose it.
        engine: U32,
        /// Id of a text: the name of the function of HSA or CUDA.
        function: U32,
        reserved: [u8; 36],
    }
}

/// The id of an agent that is not known.
pub const NO_AGENT: u32 = u32::MAX;

/// Directions of a [`MemoryCopy`].
pub mod direction {
    pub const UNKNOWN: u32 = 0;
    pub const HOST_TO_HOST: u32 = 1;
    pub const HOST_TO_DEVICE: u32 = 2;
    pub const DEVICE_TO_HOST: u32 = 3;
    /// Between two GPUs, or within one.
    pub const DEVICE_TO_DEVICE: u32 = 4;
    /// A fill. It has a destination only.
    pub const FILL: u32 = 5;
}

plain! {
    /// A marker of the program (roctx, NVTX). Ids start at 1. A range is recorded when it ends; one that has not ended when
    /// its thread ends or the file is closed has the flag [`flag::UNFINISHED`] and ends then. Since version 2.
    Marker {
        head: Head,
        /// System clock.
        start: U64,
        /// System clock; `start` for a mark.
        end: U64,
        /// The thread that marked or began (`gettid`).
        thread: U32,
        /// The thread that ended the range.
        end_thread: U32,
        /// Id of a text: the message.
        text: U32,
        /// See [`marker`].
        what: U32,
        /// For [`marker::PROCESS_RANGE`], the value that `roctxRangeStartA` or `nvtxRangeStart` returned.
        range: U64,
        /// How many ranges of the same thread and domain contain it, for [`marker::RANGE`].
        depth: U32,
        /// Id of a text: the name of its domain (NVTX). 0 for the default domain. Older readers ignore it.
        domain: U32,
        reserved: [u8; 64],
    }
}

/// Types of markers ([`Marker::what`]).
pub mod marker {
    /// A point in time.
    pub const MARK: u32 = 0;
    /// A range of one thread (push and pop). They nest.
    pub const RANGE: u32 = 1;
    /// A range of the process (start and stop), which can end on another thread. They need not nest.
    pub const PROCESS_RANGE: u32 = 2;
}

plain! {
    /// A stream of HIP or CUDA. Ids start at 1, in the order of their first use. A handle that is reused after its stream was
    /// destroyed is another stream. Since version 2.
    Stream {
        head: Head,
        /// The stream's first use (system clock).
        first_use: U64,
        /// `hipStream_t` or `cudaStream_t`.
        handle: U64,
        /// See [`stream`].
        what: U32,
        /// The thread (`gettid`) of a [`stream::PER_THREAD`], otherwise 0.
        thread: U32,
        reserved: [u8; 88],
    }
}

/// Types of streams ([`Stream::what`]).
pub mod stream {
    pub const CREATED: u32 = 0;
    /// The NULL stream, one per device: all of them have one record.
    pub const NULL: u32 = 1;
    /// A thread's default stream (`hipStreamPerThread`, `cudaStreamPerThread`), one per device and thread.
    pub const PER_THREAD: u32 = 2;
}

plain! {
    /// A name that the program gave to a thread, a stream or an agent (roctx, NVTX). The record's id is the object's id, or
    /// the thread's (`gettid`). The last name is valid. Since version 2.
    Name {
        head: Head,
        /// See [`named`].
        what: U32,
        /// Id of a text.
        text: U32,
        reserved: [u8; 104],
    }
}

/// Types of objects that have a [`Name`].
pub mod named {
    pub const THREAD: u32 = 1;
    pub const STREAM: u32 = 2;
    pub const AGENT: u32 = 3;
}

plain! {
    /// The recording started or stopped at the program's request or after a time. A trace without such a record was
    /// recording from its beginning. Ids start at 1. Since version 2.
    Recording {
        head: Head,
        /// When (system clock).
        time: U64,
        /// 1 if the recording started, 0 if it stopped. 0 in the first record: the trace began stopped.
        is_on: U32,
        reserved: [u8; 100],
    }
}

/// A record of this format.
pub trait Record:
    IntoBytes + FromBytes + Immutable + KnownLayout + Unaligned + Sized + Copy
{
    const KIND: u16;
    fn head(&mut self) -> &mut Head;

    /// A record of this kind. All other fields are 0.
    fn new(id: u64, flags: u16) -> Self {
        let mut record = Self::new_zeroed();
        *record.head() = Head {
            crc: 0.into(),
            kind: Self::KIND.into(),
            flags: flags.into(),
            id: id.into(),
        };
        record
    }

    /// Its bytes, with the checksum.
    fn seal(mut self) -> [u8; RECORD_SIZE] {
        let crc = checksum(self.as_bytes());
        self.head().crc = crc.into();
        let mut bytes = [0; RECORD_SIZE];
        bytes.copy_from_slice(self.as_bytes());
        bytes
    }
}

macro_rules! records {
    ($($name:ident = $kind:ident),*) => {$(
        impl Record for $name {
            const KIND: u16 = kind::$kind;
            fn head(&mut self) -> &mut Head {
                &mut self.head
            }
        }
        const _: () = assert!(size_of::<$name>() == RECORD_SIZE);
    )*};
}

records! {
    Dispatch = DISPATCH, Call = CALL, Text = TEXT, Kernel = KERNEL, Agent = AGENT, Queue = QUEUE, Process = PROCESS,
    MemoryCopy = COPY, Marker = MARKER, Stream = STREAM, Name = NAME, Recording = RECORDING
}

const _: () = assert!(size_of::<Header>() == COUNTERS);

/// The checksum of a record: CRC-32 (IEEE) of all its bytes except the first four.
pub fn checksum(record: &[u8]) -> u32 {
    crc32fast::hash(record.get(4..).unwrap_or_default())
}

impl Header {
    pub fn new(pid: u32, frequency: u64, started: u64, started_unix: u64) -> Header {
        Header {
            magic: MAGIC,
            version: VERSION.into(),
            header_size: (HEADER_SIZE as u32).into(),
            record_size: (RECORD_SIZE as u32).into(),
            pid: pid.into(),
            frequency: frequency.into(),
            started: started.into(),
            started_unix: started_unix.into(),
            process_started: 0.into(),
            pid_namespace: 0.into(),
            reserved: [0; 60],
            crc: 0.into(),
        }
    }

    /// The same header of a process that was created at this time in this namespace.
    pub fn of_process(mut self, process_started: u64, pid_namespace: u64) -> Header {
        self.process_started = process_started.into();
        self.pid_namespace = pid_namespace.into();
        self
    }

    /// Whether both are of one process, which may have executed another program in between.
    pub fn is_of_same_process(&self, other: &Header) -> bool {
        let process = |header: &Header| (header.pid, header.process_started, header.pid_namespace);
        self.process_started.get() != 0 && process(self) == process(other)
    }

    /// The valid value of `crc`.
    pub fn checksum(&self) -> u32 {
        let bytes = self.as_bytes();
        crc32fast::hash(&bytes[..bytes.len() - size_of::<U32>()])
    }

    /// The first page of a new file, with all counters 0.
    pub fn page(&self) -> [u8; HEADER_SIZE] {
        let header = Header {
            crc: self.checksum().into(),
            ..*self
        };
        let mut page = [0; HEADER_SIZE];
        page[..COUNTERS].copy_from_slice(header.as_bytes());
        for count in Count::ALL {
            let at = count.offset();
            page[at..at + size_of::<Counter>()].copy_from_slice(Counter::new(0).as_bytes());
        }
        page
    }
}

/// Splits a text into records.
pub fn pieces(id: u32, text: &str) -> impl Iterator<Item = Text> {
    let bytes = text.as_bytes();
    // An empty text also has a piece, which has its length.
    (0..bytes.len().div_ceil(PIECE).max(1)).map(move |n| {
        let rest = &bytes[n * PIECE..];
        let part = &rest[..rest.len().min(PIECE)];
        let mut piece = Text::new(id.into(), 0);
        piece.length = (bytes.len() as u32).into();
        piece.offset = ((n * PIECE) as u32).into();
        piece.bytes[..part.len()].copy_from_slice(part);
        piece
    })
}
