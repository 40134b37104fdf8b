//! Doorbells of intercept queues. ROCr 7.2.4 takes all packets that are there in one batch, and has two faults with
//! large ones (llvm-tests/trace/overflow.test): one that wraps around the ring's end is copied into a buffer of 256
//! packets, and one that fills the queue underneath loses the wake-up for its rest. A tool that adds packets would make
//! both likelier. So a doorbell hands ROCr a few packets at a time: the header of the packet behind them says "not
//! written yet" until they are taken.
//!
//! One gap is left that no tool can close: a program that writes many packets before it rings, while ROCr waits for
//! room in the queue underneath and wakes up in just that moment.

use super::types::*;
use crate::guard::lock;
use crate::registry::Registry;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicU16, AtomicU64, AtomicUsize, Ordering};

/// A doorbell's store, ROCr's.
pub type Ring = unsafe extern "C" fn(SignalHandle, SignalValue);

/// Packets that ROCr gets at once, at most: half of what its buffer holds.
const LARGEST: u64 = 128;
/// `HSA_PACKET_TYPE_INVALID`.
const INVALID: u16 = 1;

/// A packet whose header is kept back.
struct Held {
    index: u64,
    header: u16,
}

struct Doorbell {
    queue: AtomicPtr<QueueHead>,
    held: Mutex<Option<Held>>,
}

/// By their signals.
static DOORBELLS: Registry<Doorbell> = Registry::new();
/// Doorbells that keep a packet back.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// Has the doorbell of an intercept queue watched, until [`remove`].
///
/// # Safety
/// `queue` is an intercept queue, alive until then.
pub unsafe fn add(queue: *mut QueueHead) {
    // SAFETY: the caller's promise.
    let signal = unsafe { (*queue).doorbell_signal };
    let take = |doorbell: &Doorbell| {
        doorbell.queue.store(queue, Ordering::Relaxed);
        true
    };
    DOORBELLS.add(signal.0, take, || Doorbell {
        queue: AtomicPtr::new(queue),
        held: Mutex::default(),
    });
}

/// The queue is about to be destroyed.
///
/// # Safety
/// `queue` is an intercept queue, still alive.
pub unsafe fn remove(queue: *mut QueueHead) {
    // SAFETY: the caller's promise.
    let signal = unsafe { (*queue).doorbell_signal };
    DOORBELLS.remove(signal.0, |doorbell| {
        if lock(&doorbell.held).take().is_some() {
            HELD.fetch_sub(1, Ordering::Relaxed);
        }
    });
}

/// A store to a signal that may be a doorbell.
///
/// # Safety
/// As `ring`, which is ROCr's function for it.
pub unsafe fn store(signal: SignalHandle, value: SignalValue, ring: Ring) {
    match DOORBELLS.find(signal.0) {
        // SAFETY: the caller's promise.
        None => unsafe { ring(signal, value) },
        // SAFETY: the queue of a doorbell that is stored to is alive.
        Some(doorbell) => unsafe { doorbell.value.rung(signal, value, ring) },
    }
}

/// Something is kept back.
pub fn are_held() -> bool {
    HELD.load(Ordering::Relaxed) != 0
}

/// Hands on what is kept back, as far as ROCr takes it. Whether something still is.
pub fn pump(ring: Ring) -> bool {
    if !are_held() {
        return false;
    }
    // No queue goes while this looks.
    let (_unchanged, doorbells) = DOORBELLS.all();
    for doorbell in doorbells {
        let signal = SignalHandle(doorbell.key());
        let mut held = lock(&doorbell.value.held);
        if held.is_some() && signal.0 != 0 {
            // SAFETY: the queue is in the list, so it is alive, and ROCr's function fits its doorbell.
            unsafe { doorbell.value.hand_on(signal, &mut held, ring) };
        }
    }
    are_held()
}

impl Doorbell {
    /// Index of the next packet that ROCr takes, and of the next that the program writes.
    ///
    /// # Safety
    /// The queue is alive.
    unsafe fn indices(&self) -> (u64, u64) {
        let queue = self.queue.load(Ordering::Relaxed).cast::<u8>();
        // SAFETY: an `hsa_queue_t` is the beginning of an `amd_queue_t` (amd_hsa_queue.h), whose indices are atomic.
        unsafe {
            let at = |offset| &*queue.add(offset).cast::<AtomicU64>();
            (
                at(AMD_QUEUE_READ_DISPATCH_ID).load(Ordering::Acquire),
                at(AMD_QUEUE_WRITE_DISPATCH_ID).load(Ordering::Acquire),
            )
        }
    }

    /// # Safety
    /// The queue is alive.
    unsafe fn header(&self, index: u64) -> &AtomicU16 {
        // SAFETY: a packet of the ring; headers are written atomically (HSA, "Packet header").
        unsafe {
            let queue = &*self.queue.load(Ordering::Relaxed);
            let slot = index % u64::from(queue.size.max(1));
            &*queue
                .base_address
                .cast::<u8>()
                .add(64 * slot as usize)
                .cast()
        }
    }

    /// # Safety
    /// The queue is alive.
    unsafe fn limit(&self) -> u64 {
        // SAFETY: the caller's promise.
        let size = u64::from(unsafe { (*self.queue.load(Ordering::Relaxed)).size });
        // Each packet may become two, and these must be fewer than the queue has.
        (size / 2).saturating_sub(1).clamp(1, LARGEST)
    }

    /// # Safety
    /// The queue is alive, `signal` its doorbell, `ring` is ROCr's.
    unsafe fn rung(&self, signal: SignalHandle, value: SignalValue, ring: Ring) {
        // SAFETY: the caller's promise, for all of these.
        unsafe {
            let (read, write) = self.indices();
            if write.saturating_sub(read) <= self.limit() && !are_held() {
                ring(signal, value);
                return;
            }
            self.hand_on(signal, &mut lock(&self.held), ring);
        }
    }

    /// # Safety
    /// The queue is alive, `signal` its doorbell, `ring` is ROCr's.
    unsafe fn hand_on(&self, signal: SignalHandle, held: &mut Option<Held>, ring: Ring) {
        // SAFETY: the caller's promise, for all of these.
        unsafe {
            loop {
                if let Some(kept) = held.take() {
                    ring(signal, kept.index as SignalValue - 1);
                    if self.indices().0 < kept.index {
                        // ROCr waits for room underneath.
                        *held = Some(kept);
                        return;
                    }
                    HELD.fetch_sub(1, Ordering::Relaxed);
                    self.header(kept.index)
                        .store(kept.header, Ordering::Release);
                }
                let (read, write) = self.indices();
                let cut = read + self.limit();
                if write <= cut {
                    ring(signal, write as SignalValue - 1);
                    return;
                }
                let header = self.header(cut).load(Ordering::Acquire);
                if header & 0xff == INVALID {
                    // Another thread has not written it yet, and will ring when it has.
                    ring(signal, write as SignalValue - 1);
                    return;
                }
                self.header(cut).store(INVALID, Ordering::Release);
                HELD.fetch_add(1, Ordering::Relaxed);
                *held = Some(Held { index: cut, header });
            }
        }
    }
}
