//! The bytes of a trace file. Everything is little endian.
//!
//! A page of header ([`Header`], then [`Counter`]s), then records of [`RECORD_SIZE`] bytes, one after the other, each
//! with a checksum of its own. A record is written once and never changed, so the file can be read at any time, also
//! while it is written and after its writer was killed. A record of zeros was not written yet: the file grows by many
//! records at a time, and only a writer that ends in order cuts it to length.
//!
//! A record that names another by its id (a dispatch its kernel, a kernel its name) comes after it. Only the record of
//! an API call comes when the call has returned, before or after the dispatches that it made.
//!
//! A reader that meets a later version reads nothing; a later minor extension uses the reserved bytes, which are 0
//! now, or a new kind of record, which readers skip and count.

use zerocopy::byteorder::little_endian::{I32, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

pub const MAGIC: [u8; 8] = *b"DEVPROFT";
pub const VERSION: u32 = 1;
/// Bytes before the first record.
pub const HEADER_SIZE: usize = 4096;
/// Bytes of each record.
pub const RECORD_SIZE: usize = 128;
/// Where the counters begin.
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
        /// Of the process that wrote the file.
        pid: U32,
        /// Ticks a second of HSA's system clock, in which all times are unless their record says otherwise.
        frequency: U64,
        /// The system clock when the file was made.
        started: U64,
        /// The same moment, nanoseconds since 1970 (UTC).
        started_unix: U64,
        reserved: [u8; 76],
        /// CRC-32 (IEEE) of the bytes before it.
        crc: U32,
    }
}

plain! {
    /// A number that the writer changes while the file is open: valid when `check` is its complement.
    Counter {
        value: U64,
        check: U64,
    }
}

/// The counters, in the order in which they stand in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// Records in the file, all whole. A writer that lives may be at work behind them, and one that was killed may have
    /// left a few more; a file that has fewer is truncated.
    Records,
    /// Dispatches for which there was no room.
    DroppedDispatches,
    /// API calls for which there was no room.
    DroppedCalls,
    /// Names, kernels, queues and agents for which there was no room.
    DroppedOthers,
    /// Packets of a type that devprof does not know; they went to their queue unrecorded.
    UnknownPackets,
    /// 1 when the writer ended in order.
    Closed,
}

impl Count {
    pub const ALL: [Count; 6] = [
        Count::Records,
        Count::DroppedDispatches,
        Count::DroppedCalls,
        Count::DroppedOthers,
        Count::UnknownPackets,
        Count::Closed,
    ];

    /// Bytes from the beginning of the file to its [`Counter`].
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

    /// The number, if it is whole.
    pub fn get(&self) -> Option<u64> {
        (self.value.get() == !self.check.get()).then_some(self.value.get())
    }
}

/// What a record is about ([`Head::kind`]).
pub mod kind {
    pub const DISPATCH: u16 = 1;
    pub const CALL: u16 = 2;
    pub const TEXT: u16 = 3;
    pub const KERNEL: u16 = 4;
    pub const AGENT: u16 = 5;
    pub const QUEUE: u16 = 6;
    pub const PROCESS: u16 = 7;
}

/// Flags of a [`Dispatch`].
pub mod flag {
    /// Mask of the clock that `start` and `end` are in.
    pub const CLOCK: u16 = 3;
    /// The system clock, as HSA translated it from the agent's.
    pub const CLOCK_SYSTEM: u16 = 0;
    /// The system clock, from the agent's ticks by their frequencies alone: HSA's translation lay outside of the
    /// time between submission and observation, and this does not.
    pub const CLOCK_SCALED: u16 = 1;
    /// The agent's ticks ([`super::Agent::frequency`]): nothing ties them to the system clock, durations are right.
    pub const CLOCK_AGENT: u16 = 2;
    /// `start` and `end` are 0: the dispatch has none.
    pub const CLOCK_NONE: u16 = 3;
    /// It was not seen to end: still running when the process ended or its queue was destroyed. No times.
    pub const UNFINISHED: u16 = 4;
    /// It came from no API call that was watched; `correlation` is 0.
    pub const NO_CALL: u16 = 8;
    /// The register counts are not known.
    pub const NO_REGISTERS: u16 = 16;
    /// A vendor-specific dispatch packet.
    pub const VENDOR: u16 = 32;
    /// `start` and `end` were moved together, by a millisecond at most, to lie between submission and observation.
    pub const MOVED: u16 = 64;
}

plain! {
    /// The beginning of every record.
    Head {
        /// CRC-32 (IEEE) of the rest of the record.
        crc: U32,
        /// See [`kind`].
        kind: U16,
        flags: U16,
        id: U64,
    }
}

plain! {
    /// One kernel dispatch. Its id counts dispatches from 1: in a queue in the order in which they were seen to be
    /// complete, which is that of submission unless kernels overtake each other.
    Dispatch {
        head: Head,
        /// The API call that made it, 0 for none.
        correlation: U64,
        /// When the packet was written, system clock.
        submit: U64,
        start: U64,
        end: U64,
        /// When it was seen to be complete, system clock.
        observed: U64,
        agent: U32,
        queue: U32,
        /// The thread that wrote the packet (`gettid`).
        thread: U32,
        /// 0: its code object was not known.
        kernel: U32,
        /// Work-items.
        grid: [U32; 3],
        /// Work-items.
        workgroup: [U16; 3],
        reserved0: U16,
        /// LDS of a workgroup, bytes.
        lds: U32,
        /// Scratch memory of a work-item, bytes.
        scratch: U32,
        /// Vector registers of a work-item.
        vgprs: U16,
        /// Accumulation vector registers of a work-item.
        accum_vgprs: U16,
        /// Scalar registers of a wave.
        sgprs: U16,
        reserved1: [u8; 22],
    }
}

plain! {
    /// An API call of the program. Its id is the correlation id of its dispatches.
    Call {
        head: Head,
        start: U64,
        end: U64,
        /// The thread that called (`gettid`).
        thread: U32,
        /// The function's name, a text.
        name: U32,
        /// What the call returned (`hipError_t`).
        status: I32,
        reserved: [u8; 84],
    }
}

/// Bytes of a text in one record.
pub const PIECE: usize = 104;

plain! {
    /// A piece of a text. Its pieces follow each other, in order.
    Text {
        head: Head,
        /// Bytes of the whole text.
        length: U32,
        /// Bytes of it before this piece.
        offset: U32,
        bytes: [u8; PIECE],
    }
}

plain! {
    /// A kernel on one agent.
    Kernel {
        head: Head,
        /// `AMD_KERNEL_CODE`'s address in the dispatch packet (`kernel_object`) where it was first loaded.
        object: U64,
        /// A text: the symbol's name as the code object has it.
        name: U32,
        agent: U32,
        /// Bytes of its arguments.
        kernarg: U32,
        /// Static LDS, bytes.
        lds: U32,
        /// Static scratch of a work-item, bytes.
        scratch: U32,
        vgprs: U16,
        accum_vgprs: U16,
        sgprs: U16,
        reserved: [u8; 78],
    }
}

plain! {
    /// An agent that has queues. Its id is its place in HSA's order of all agents.
    Agent {
        head: Head,
        /// Ticks a second of its clock.
        frequency: U64,
        /// A text: the target's name, such as `gfx1100`.
        name: U32,
        /// A text: the product's name, or 0.
        product: U32,
        /// `HSA_AGENT_INFO_NODE`.
        node: U32,
        /// `HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT`.
        compute_units: U32,
        reserved: [u8; 88],
    }
}

plain! {
    /// A queue. Its id counts queues from 1 in the order in which they were made.
    Queue {
        head: Head,
        /// System clock.
        created: U64,
        agent: U32,
        /// Packets.
        size: U32,
        reserved: [u8; 96],
    }
}

plain! {
    /// The process that wrote the file: its id is its process id.
    Process {
        head: Head,
        parent: U32,
        /// A text: the host's name.
        host: U32,
        /// A text: the command line, arguments with spaces between them.
        command: U32,
        reserved: [u8; 100],
    }
}

/// A record of this format's.
pub trait Record:
    IntoBytes + FromBytes + Immutable + KnownLayout + Unaligned + Sized + Copy
{
    const KIND: u16;
    fn head(&mut self) -> &mut Head;

    /// A record of this kind with all else 0.
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

    /// Its bytes, with their checksum.
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
    Dispatch = DISPATCH, Call = CALL, Text = TEXT, Kernel = KERNEL, Agent = AGENT, Queue = QUEUE, Process = PROCESS
}

const _: () = assert!(size_of::<Header>() == COUNTERS);

/// The checksum of a record: of all its bytes but the first four.
pub fn checksum(record: &[u8]) -> u32 {
    crc32fast::hash(record.get(4..).unwrap_or_default())
}

impl Header {
    pub fn new(pid: u32, frequency: u64, started: u64, started_unix: u64) -> Header {
        let mut header = Header {
            magic: MAGIC,
            version: VERSION.into(),
            header_size: (HEADER_SIZE as u32).into(),
            record_size: (RECORD_SIZE as u32).into(),
            pid: pid.into(),
            frequency: frequency.into(),
            started: started.into(),
            started_unix: started_unix.into(),
            reserved: [0; 76],
            crc: 0.into(),
        };
        header.crc = header.checksum().into();
        header
    }

    /// What `crc` has to be.
    pub fn checksum(&self) -> u32 {
        let bytes = self.as_bytes();
        crc32fast::hash(&bytes[..bytes.len() - size_of::<U32>()])
    }

    /// The whole header of a new file, with all counters 0.
    pub fn page(&self) -> [u8; HEADER_SIZE] {
        let mut page = [0; HEADER_SIZE];
        page[..COUNTERS].copy_from_slice(self.as_bytes());
        for count in Count::ALL {
            let at = count.offset();
            page[at..at + size_of::<Counter>()].copy_from_slice(Counter::new(0).as_bytes());
        }
        page
    }
}

/// A text cut into records.
pub fn pieces(id: u32, text: &str) -> impl Iterator<Item = Text> {
    let bytes = text.as_bytes();
    // An empty text has one piece, too: that is where it is said to be empty.
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
