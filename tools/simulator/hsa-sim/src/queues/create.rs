//! Creates queues.

use super::block::{ALL, Block, Work, amd_queue};
use super::gaps::Gaps;
use super::host::QueueHost;
use crate::memory::allocations::Kind;
use crate::state::{State, with};
use crate::sync::locked;
use gpu_model::queue::Info;
use hsa_abi::*;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// The size of the smallest ring, in packets.
pub const MIN_PACKETS: u32 = 64;

/// The size of the largest ring, in packets.
pub const MAX_PACKETS: u32 = 131_072;

const PACKET_BYTES: usize = 64;

/// The parameters of a new queue.
pub struct Request {
    pub agent: AgentHandle,
    pub size: u32,
    pub kind: u32,
    pub callback: Option<QueueErrorCallback>,
    pub data: *mut c_void,
    /// The queue's id. `None`: a new one.
    pub id: Option<u64>,
}

impl Request {
    /// A request for a queue with a new id.
    pub fn new(
        agent: AgentHandle,
        size: u32,
        kind: u32,
        callback: Option<QueueErrorCallback>,
        data: *mut c_void,
    ) -> Request {
        Request {
            agent,
            size,
            kind,
            callback,
            data,
            id: None,
        }
    }
}

/// Creates a queue. `work` creates the processor of its packets.
pub fn create(
    request: &Request,
    work: impl FnOnce(&mut State, *mut Block) -> Result<Work, Status>,
) -> Result<*mut Block, Status> {
    if !request.size.is_power_of_two() || request.size > MAX_PACKETS || request.size < MIN_PACKETS {
        return Err(Status::INVALID_ARGUMENT);
    }
    with(|state| {
        let (number, _) = state.agents.gpu(request.agent)?;
        let bytes = request.size as usize * PACKET_BYTES;
        let mut map = |size| {
            state
                .memory
                .allocate(size, Kind::Runtime, 0, 0, vec![number])
                .ok_or(Status::OUT_OF_RESOURCES)
        };
        let ring = map(bytes)?;
        let block = map(size_of::<Block>())? as *mut Block;
        let doorbell = state.create_signal(AMD_SIGNAL_KIND_DOORBELL, -1)?;
        for packet in 0..request.size as usize {
            // SAFETY: inside the ring, which is new.
            unsafe {
                *((ring + packet * PACKET_BYTES) as *mut u16) = u16::from(HSA_PACKET_TYPE_INVALID);
            }
        }
        static ID: AtomicU64 = AtomicU64::new(0);
        let amd = amd_queue(Queue {
            kind: request.kind,
            features: HSA_QUEUE_FEATURE_KERNEL_DISPATCH,
            base_address: ring as *mut c_void,
            doorbell_signal: doorbell,
            size: request.size,
            reserved1: 0,
            id: request.id.unwrap_or_else(|| ID.fetch_add(1, Relaxed)),
        });
        // SAFETY: new memory of the block's size; the doorbell is a new signal.
        unsafe {
            block.write(Block {
                amd,
                agent: number,
                work: Mutex::new(Work::Inactive),
                profiling: AtomicBool::new(false),
                cu_mask: Mutex::default(),
                under: AtomicPtr::default(),
                async_doorbell: AtomicU64::new(0),
                owner: AtomicPtr::default(),
            });
            (*(doorbell.0 as *mut AmdSignal)).queue_ptr = block.cast();
        }
        let work = work(state, block).inspect_err(|_| {
            state.signals.destroy(doorbell);
            for base in [ring, block as usize] {
                state.memory.free(base, Kind::Runtime);
            }
        })?;
        // SAFETY: written above; no other thread has it.
        *locked(unsafe { &(*block).work }) = work;
        locked(&ALL).push(block as usize);
        Ok(block)
    })
}

/// Starts the model on a queue's ring.
///
/// # Safety
/// `create` has written `block`.
pub unsafe fn start(state: &State, block: *mut Block, request: &Request) -> Result<Work, Status> {
    // SAFETY: the caller's promise.
    let block = unsafe { &*block };
    let amd = &block.amd;
    let host = QueueHost {
        queue: &raw const *block as usize,
        executes: state.settings.kernels,
        newest_packets: state.settings.newest_packets,
        agent: request.agent,
        gaps: Gaps::default(),
        l2: state.agents.gpus[block.agent - 1].l2.clone(),
        callback: request
            .callback
            .map(|callback| (callback, request.data as usize)),
    };
    let info = Info {
        ring: amd.hsa_queue.base_address as u64,
        packets: u64::from(amd.hsa_queue.size),
        write_index: &raw const amd.write_dispatch_id as u64,
        read_index: &raw const amd.read_dispatch_id as u64,
        queue: &raw const *amd as u64,
    };
    let gpu = state.agents.gpus[block.agent - 1].gpu.clone();
    gpu_model::queue::Queue::start(gpu, Arc::new(host), info)
        .map(Work::Model)
        .map_err(|_| Status::OUT_OF_RESOURCES)
}
