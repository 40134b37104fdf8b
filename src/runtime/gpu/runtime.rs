//! The interface between drains and GPU runtimes.

use crate::support::settings::settings;
use std::collections::{HashMap, HashSet};
use std::ffi::CStr;
use std::fmt;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::ops::Range;
use std::time::Duration;

/// A GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AgentId {
    /// The handle of an `hsa_agent_t`.
    Hsa(u64),
    /// A device can run code for several architectures, each of which is an agent: 90 for `sm_90`.
    Cuda { device: i32, arch: u32 },
}

/// Code objects that were loaded together. Instances of devprof pass it to each other, so it has `repr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum ExecutableId {
    /// The handle of an `hsa_executable_t`. HSA reuses it after the executable was destroyed.
    Hsa(u64),
    /// A module, numbered in the order of loading, from 1.
    Cuda(u32),
}

impl AgentId {
    /// HSA's handle. For another runtime's agent 0, which HSA refuses.
    pub fn hsa_handle(self) -> u64 {
        match self {
            AgentId::Hsa(handle) => handle,
            AgentId::Cuda { .. } => 0,
        }
    }
}

impl ExecutableId {
    /// HSA's handle. For another runtime's executable 0, which HSA refuses.
    pub fn hsa_handle(self) -> u64 {
        match self {
            ExecutableId::Hsa(handle) => handle,
            ExecutableId::Cuda(_) => 0,
        }
    }
}

/// A map whose keys are ids or addresses. With SipHash, an archive would be 5 KB larger; ids are not chosen by an attacker.
pub type IdMap<K, V> = HashMap<K, V, IdBuild>;
pub type IdSet<K> = HashSet<K, IdBuild>;
type IdBuild = BuildHasherDefault<IdHasher>;

/// An empty map.
pub const fn id_map<K, V>() -> IdMap<K, V> {
    HashMap::with_hasher(BuildHasherDefault::new())
}

/// Multiplies by 2^64 divided by the golden ratio. The lowest bits of an address, and so of the product, are 0, but a map uses
/// the lowest bits of a hash first: the product is rotated.
#[derive(Clone, Copy, Default)]
pub struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn finish(&self) -> u64 {
        self.0.rotate_left(26)
    }
}

// Smaller than the derived implementations, and as good: two runtimes rarely have the same numbers.
impl Hash for AgentId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(match *self {
            AgentId::Hsa(handle) => handle,
            AgentId::Cuda { device, arch } => u64::from(device as u32) << 32 | u64::from(arch),
        });
    }
}

impl Hash for ExecutableId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(match *self {
            ExecutableId::Hsa(handle) => handle,
            ExecutableId::Cuda(n) => n.into(),
        });
    }
}

impl fmt::Display for ExecutableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExecutableId::Hsa(handle) => write!(f, "{handle:#x}"),
            ExecutableId::Cuda(n) => n.fmt(f),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Agent {
    pub id: AgentId,
    /// The target without features, such as `gfx1100`.
    pub name: String,
}

/// The GPUs of this process.
#[derive(Default)]
pub struct Agents {
    /// In the runtime's order.
    pub gpus: Vec<Agent>,
    /// Agents whose description could not be read.
    pub unknown: Vec<(AgentId, Error)>,
}

/// A loaded segment of a code object.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    pub agent: AgentId,
    pub executable: ExecutableId,
    /// Device address.
    pub base: u64,
    /// Bytes.
    pub size: u64,
}

/// The segment that contains a range of device addresses.
pub fn segment_of<'a>(range: &Range<u64>, segments: &'a [Range<u64>]) -> Option<&'a Range<u64>> {
    segments
        .iter()
        .find(|segment| segment.start <= range.start && range.end <= segment.end)
}

/// Whether `range` is inside one segment.
pub fn inside(range: &Range<u64>, segments: &[Range<u64>]) -> bool {
    segment_of(range, segments).is_some()
}

/// The loaded segments of all executables.
#[derive(Default)]
pub struct Segments {
    /// In the loader's order.
    pub found: Vec<Segment>,
    /// Executables whose segments could not be read.
    pub failed: Vec<(ExecutableId, Error)>,
}

impl Segments {
    /// The executables, each at least once.
    pub fn executables(&self) -> impl Iterator<Item = ExecutableId> {
        let found = self.found.iter().map(|segment| segment.executable);
        found.chain(self.failed.iter().map(|(executable, _)| *executable))
    }
}

/// A variable of a code object. Its address and size are unchecked.
#[derive(Clone, Debug)]
pub struct Variable {
    pub name: String,
    /// Device address.
    pub address: u64,
    /// Bytes.
    pub size: u64,
}

/// The units of a GPU that run waves: compute units, or multiprocessors of NVIDIA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Units {
    /// The numbers of units are less than this. There may be gaps between them.
    pub count: u32,
    /// The device runtime limits the numbers of copies, so that there can be any number of them, not only powers of two.
    pub is_limited: bool,
}

/// The memory of a GPU, bytes. `None`: unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    pub size: Option<u64>,
    /// Bytes that no process has allocated.
    pub free: Option<u64>,
}

/// A status that a GPU runtime returned.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Code {
    /// For example `HSA`.
    pub runtime: &'static str,
    pub number: u32,
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.runtime {
            // NVIDIA documents numbers in decimal.
            "CUDA" => write!(f, "CUDA error {}", self.number),
            runtime => write!(f, "{runtime} status {:#x}", self.number),
        }
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a request to a GPU runtime failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Error {
    #[error("the {runtime} runtime in this process has no {function}: it is too old for devprof")]
    Missing {
        runtime: &'static str,
        function: &'static str,
    },
    #[error("{call} failed: {code}")]
    Call { call: &'static str, code: Code },
    #[error(
        "its counts are lost, because a kernel has failed ({code}: {what}), and then nothing can be read from the context"
    )]
    KernelFailed { code: Code, what: &'static str },
    #[error("{0} was not complete at the time limit (DEVPROF_SYNC_MS)")]
    TimedOut(&'static str),
    #[error("cannot start the thread that copies from the GPU")]
    NoThread,
    #[error("it was unloaded meanwhile")]
    Unloaded,
    #[error("cannot allocate memory for its profile")]
    OutOfMemory,
    #[error("devprof does not support {0} for {1}")]
    Unsupported(&'static str, &'static str),
    #[error(
        "the driver's handle of the module is not known: more libraries with compressed code have its kernels than are loaded, or none has its counters"
    )]
    NoHandle,
    #[error("the driver's variable {0} is shorter than in the image")]
    TooShort(String),
}

/// Called with the number of a piece, and its bytes or the error.
pub type Take<'a> = &'a mut dyn FnMut(usize, Result<&[u8], Error>);

/// A GPU runtime that is initialized. Ranges are device addresses inside loaded segments, or inside what
/// [`allocate`](Runtime::allocate) returns.
///
/// The caller makes sure that no executable is destroyed during a call, except for [`segments`](Runtime::segments) and
/// [`with_segments`](Runtime::with_segments).
pub trait Runtime: Sync {
    /// `HSA` or `CUDA`.
    fn name(&self) -> &'static str;

    fn agents(&self) -> Result<Agents, Error>;

    /// The segments of all executables.
    fn segments(&self) -> Result<Segments, Error>;

    /// Calls `work` once, with the segments of all executables. None of them is destroyed during the call: a thread that loads
    /// or unloads code waits for it. `work` must not list the executables again.
    fn with_segments(&self, work: &mut dyn FnMut(Segments)) -> Result<(), Error> {
        work(self.segments()?);
        Ok(())
    }

    /// The segments of one executable.
    fn segments_of(&self, executable: ExecutableId) -> Result<Vec<Segment>, Error>;

    /// The variables of an executable on an agent whose names `is_wanted` accepts.
    fn variables(
        &self,
        executable: ExecutableId,
        agent: AgentId,
        is_wanted: fn(&[u8]) -> bool,
    ) -> Result<Vec<Variable>, Error>;

    /// The variable of an executable on an agent with this name.
    fn variable(
        &self,
        _executable: ExecutableId,
        _agent: AgentId,
        _name: &CStr,
    ) -> Result<Option<Variable>, Error> {
        Ok(None)
    }

    /// Where device code accesses `range`: parts of it, each with the address that device code uses for its first byte.
    fn device_addresses(
        &self,
        _executable: ExecutableId,
        _range: &Range<u64>,
    ) -> Result<Vec<(Range<u64>, u64)>, Error> {
        Err(Error::Unsupported("copies of counters", self.name()))
    }

    /// Where a code object was loaded from, for a message.
    fn origin(&self, executable: ExecutableId, agent: AgentId) -> Option<String>;

    /// The build id of the executable's code object. `None`: it is in the notes of the ELF file, with whose header the first segment
    /// begins.
    fn build_id(&self, executable: ExecutableId) -> Option<[u8; 16]>;

    /// Whether an executable is perhaps only loaded because devprof has requested it. It has no profile before it has
    /// counted.
    fn may_be_unused(&self, _executable: ExecutableId) -> bool {
        false
    }

    /// The largest piece of a [`read`](Runtime::read) of `total` bytes from the agent, bytes. Allocates a buffer if
    /// necessary.
    fn largest_piece(&self, agent: AgentId, total: usize) -> usize;

    /// Copies `pieces` from the agent in as few batches as possible. Calls `take` for each. No piece may be empty or
    /// larger than [`largest_piece`](Runtime::largest_piece).
    ///
    /// Fails if no memory can be allocated, or if a batch takes longer than `limit`.
    fn read(
        &self,
        agent: AgentId,
        pieces: &[Range<u64>],
        limit: Duration,
        take: Take,
    ) -> Result<(), Error>;

    /// Sets every byte of each range on the agent, in one batch of copies. The ranges must not overlap. Returns the
    /// indices of those that could not be set.
    ///
    /// Fails if the batch takes longer than `limit`.
    fn fill(
        &self,
        agent: AgentId,
        ranges: &[(Range<u64>, u8)],
        limit: Duration,
    ) -> Result<Vec<(usize, Error)>, Error>;

    /// Writes at most 64 KiB to the agent, in one copy.
    ///
    /// Fails if the copy takes longer than `limit`. It may still be executed then.
    fn write(
        &self,
        _agent: AgentId,
        _address: u64,
        _bytes: &[u8],
        _limit: Duration,
    ) -> Result<(), Error> {
        Err(Error::Unsupported("copies of counters", self.name()))
    }

    /// The units of an agent. `None`: the device runtime cannot read the number of a unit.
    fn units(&self, _agent: &Agent) -> Result<Option<Units>, Error> {
        Ok(None)
    }

    /// The memory of an agent.
    fn memory(&self, _agent: &Agent) -> Memory {
        Memory::default()
    }

    /// Allocates `size` bytes of the agent's own memory, for the kernels of an executable. The contents are undefined.
    /// Returns the address, which device code uses, too: a multiple of 256.
    fn allocate(
        &self,
        _executable: ExecutableId,
        _agent: AgentId,
        _size: usize,
    ) -> Result<u64, Error> {
        Err(Error::Unsupported("copies of counters", self.name()))
    }

    /// Frees what [`allocate`](Runtime::allocate) has returned. No kernel that uses it may run.
    fn free(&self, _address: u64) {}

    /// Writes the agent's caches back to its memory, and invalidates them. False if that takes longer than `limit`.
    fn write_back(&self, agent: AgentId, limit: Duration) -> Result<bool, Error>;

    /// Begins to wait for the kernels that were launched before this call, for `limit` at most. `all`: also for those
    /// that can only be waited for on another thread.
    ///
    /// Must not be called while holding a lock that a thread of the program may need to make progress: the wait may
    /// call the program's GPU runtime.
    fn wait(&self, all: bool, limit: Duration) -> Box<dyn Wait>;

    /// Releases all memory and signals of the requests above. The runtime is about to be shut down.
    fn release(&self) {}
}

/// A wait for running kernels.
pub trait Wait {
    /// Waits until the kernels are complete.
    fn kernels(&mut self) -> Waited;

    /// Waits until the runtime's own threads have processed their completion.
    fn handlers(self: Box<Self>);
}

/// How a wait ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Waited {
    Done,
    /// The limit was reached.
    TooLate,
    /// The thread that waits could not be created.
    NoThread,
    /// The creation of queues was not observed. Kernels in them were not waited for.
    Unobserved,
    /// HIP refuses to wait for work that it has not submitted yet.
    NotSubmitted,
    /// A stream is being captured: a wait would make the program's capture fail.
    Capturing,
}

/// Why kernels may still run.
impl fmt::Display for Waited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Waited::Done => Ok(()),
            Waited::TooLate => write!(
                f,
                "kernels still run after {} ms (DEVPROF_SYNC_MS)",
                settings().sync_limit.as_millis()
            ),
            Waited::NoThread => f.write_str("cannot start the thread that waits for kernels"),
            Waited::Unobserved => f.write_str(
                "HIP's queues were created before devprof was loaded, or without its functions, so devprof does not wait for kernels that still run",
            ),
            Waited::NotSubmitted => f.write_str(
                "HIP does not wait for its streams, because one of them is being captured (AMD_DIRECT_DISPATCH=0)",
            ),
            Waited::Capturing => f.write_str(
                "a stream is being captured, so devprof does not wait for kernels that still run",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::BuildHasher;

    #[test]
    fn ids_that_are_aligned_addresses_have_different_hashes() {
        for alignment in [1u64, 16, 4096, 1 << 21] {
            let hash = |n: u64| {
                IdBuild::default().hash_one(ExecutableId::Hsa(0x7f00_0000_0000 + n * alignment))
            };
            let buckets: HashSet<u64> = (0..1024).map(|n| hash(n) % 1024).collect();
            assert!(buckets.len() > 512, "{alignment}: {}", buckets.len());
        }
    }
}
