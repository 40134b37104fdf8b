//! The memory of a queue: its `amd_queue_t`, and the runtime's own data.

use super::interception::{self, Interception};
use crate::signals::{changes, pool};
use crate::sync::locked;
use hsa_abi::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering::Acquire, Ordering::Release};

const LDS_APERTURE_HIGH: u32 = 0x4000_0000;

const SCRATCH_APERTURE_HIGH: u32 = 0x5000_0000;

const READ_INDEX_OFFSET: usize = std::mem::offset_of!(AmdQueue, read_dispatch_id);

/// A queue without packets.
pub fn amd_queue(hsa_queue: Queue) -> AmdQueue {
    AmdQueue {
        hsa_queue,
        caps: 0,
        reserved1: [0; 3],
        write_dispatch_id: AtomicU64::new(0),
        group_segment_aperture_base_hi: LDS_APERTURE_HIGH,
        private_segment_aperture_base_hi: SCRATCH_APERTURE_HIGH,
        reserved2: [0; 14],
        read_dispatch_id: AtomicU64::new(0),
        read_dispatch_id_field_base_byte_offset: READ_INDEX_OFFSET as u32,
        reserved3: [0; 539],
    }
}

/// Makes a queue use the indexes of `shared` (see [`super::counted`]). The address is stored in reserved words.
pub fn share(queue: &mut AmdQueue, shared: *mut AmdQueue) {
    let address = shared as u64;
    queue.reserved1 = [0, address as u32, (address >> 32) as u32];
}

/// The queue whose indexes `queue` uses. Null: it uses its own.
pub fn shared(queue: &AmdQueue) -> *mut AmdQueue {
    let [_, low, high] = queue.reserved1;
    (u64::from(low) | u64::from(high) << 32) as *mut AmdQueue
}

/// A queue with the runtime's own data. The program's `hsa_queue_t` is at its beginning.
#[repr(C)]
pub struct Block {
    pub amd: AmdQueue,
    pub agent: usize,
    /// Processes the packets.
    pub work: Mutex<Work>,
    /// Whether the times of kernels are written to their completion signals.
    pub profiling: AtomicBool,
    /// One bit for each compute unit that kernels may use. Empty: all.
    pub cu_mask: Mutex<Vec<u32>>,
    /// For an intercept queue: the queue underneath.
    pub under: AtomicPtr<Block>,
    /// For an intercept queue: see [`Block::async_doorbell`].
    pub async_doorbell: AtomicU64,
    /// For a queue underneath an intercept queue: the intercept queue.
    pub owner: AtomicPtr<Block>,
}

impl Block {
    /// For an intercept queue: the signal that wakes it when the program does not ring its doorbell. For others: null.
    pub fn async_doorbell(&self) -> SignalHandle {
        SignalHandle(self.async_doorbell.load(Acquire))
    }

    /// Stops the processing of packets, when the result is dropped.
    pub fn take_work(&self) -> Work {
        std::mem::replace(&mut *locked(&self.work), Work::Inactive)
    }
}

/// The processor of a queue's packets.
pub enum Work {
    Model(gpu_model::queue::Queue),
    Intercept(Box<Interception>),
    Inactive,
}

/// The addresses of all queues.
pub static ALL: Mutex<Vec<usize>> = Mutex::new(Vec::new());

/// The number of queues that are not destroyed.
pub fn live() -> u64 {
    locked(&ALL).len() as u64
}

/// Checks whether this is the address of a queue.
///
/// # Safety
/// Always sound: the pointer is only compared.
pub unsafe fn check(queue: *const Queue) -> Result<(), Status> {
    if queue.is_null() {
        Err(Status::INVALID_ARGUMENT)
    } else if locked(&ALL).contains(&(queue as usize)) {
        Ok(())
    } else {
        Err(Status::INVALID_QUEUE)
    }
}

/// Removes a queue from the list of all queues.
pub fn forget(queue: *mut Queue) -> Result<(), Status> {
    let mut all = locked(&ALL);
    let n = all
        .iter()
        .position(|&known| known == queue as usize)
        .ok_or(Status::INVALID_QUEUE)?;
    all.swap_remove(n);
    Ok(())
}

/// Handles a store to a doorbell.
///
/// # Safety
/// `queue` is a doorbell's queue, and neither is destroyed during the call.
pub unsafe fn ring(queue: *mut AmdQueue) {
    // SAFETY: the caller's promise.
    let block = unsafe { &*queue.cast::<Block>() };
    // SAFETY: the signal lives as long as the queue.
    let async_doorbell = unsafe { pool::get(block.async_doorbell()) };
    if let Some(async_doorbell) = async_doorbell
        && interception::in_handler()
    {
        async_doorbell.value.store(0, Release);
        changes::notify();
        return;
    }
    let mut work = locked(&block.work);
    match &mut *work {
        Work::Model(model) => model.ring(),
        // SAFETY: the lock is held, and no other reference to the interception is in use.
        Work::Intercept(interception) => unsafe {
            Interception::take(&raw mut **interception, &block.amd);
        },
        Work::Inactive => {}
    }
}

/// The queue whose packets the model processes: this one, or the one underneath an intercept queue.
///
/// # Safety
/// `queue` is a queue of the runtime.
pub unsafe fn model_queue<'a>(queue: *mut Queue) -> &'a Block {
    // SAFETY: the caller's promise; the queue underneath lives as long.
    unsafe {
        let block = &*queue.cast::<Block>();
        block.under.load(Acquire).as_ref().unwrap_or(block)
    }
}

/// Enables or disables the times of kernels.
///
/// # Safety
/// `queue` is a queue of the runtime.
pub unsafe fn set_profiling(queue: *mut Queue, on: bool) {
    // SAFETY: the caller's promise.
    unsafe { model_queue(queue) }.profiling.store(on, Release);
}

/// Sets the compute units that a queue may use. The model has one compute unit and ignores the mask.
///
/// # Safety
/// `queue` is a queue of the runtime, and `mask` has `bits` bits.
pub unsafe fn set_cu_mask(queue: *mut Queue, bits: u32, mask: *const u32) {
    let mask = match bits {
        0 => Vec::new(),
        // SAFETY: the caller's promise.
        bits => unsafe { std::slice::from_raw_parts(mask, bits as usize / 32) }.to_vec(),
    };
    // SAFETY: the caller's promise.
    *locked(unsafe { &model_queue(queue).cu_mask }) = mask;
}

/// The queue that contains the indexes of `queue`.
///
/// # Safety
/// `queue` is a queue of the runtime.
pub unsafe fn indexes<'a>(queue: *const Queue) -> &'a AmdQueue {
    // SAFETY: the caller's promise. The hardware queue of a counted queue lives until shutdown.
    unsafe {
        let own: &AmdQueue = &*queue.cast();
        shared(own).as_ref().unwrap_or(own)
    }
}

/// Notifies the model of new packets in a queue underneath an intercept queue.
///
/// # Safety
/// `queue` is a queue of the runtime.
pub unsafe fn ring_model(queue: *mut AmdQueue) {
    // SAFETY: the caller's promise.
    let block = unsafe { &*queue.cast::<Block>() };
    if let Work::Model(model) = &*locked(&block.work) {
        model.ring();
    }
}
