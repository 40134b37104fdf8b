//! Doorbells of intercept queues. ROCr 7.2.4 takes all packets that are there in one batch, and has two faults with
//! large ones (llvm-tests/trace/overflow.test): one that wraps around the ring's end is copied into a buffer of 256
//! packets, and one that fills the queue underneath loses the wake-up for its rest. A tool that adds packets would make
//! both likelier. So a doorbell hands ROCr a few packets at a time: the header of the packet behind them says "not
//! written yet" until they are taken.
//!
//! When ROCr has waited for room underneath, it looks for packets on a thread of its own, perhaps just now. What it has
//! found it takes, also a packet whose header is kept back meanwhile: then the handler of packets asks here for the
//! header ([`header_kept_back`]), and the place in the ring is not touched any more, as it is another packet's.
//!
//! One gap is left that no tool can close: a program that writes many packets before it rings, while ROCr waits for
//! room in the queue underneath and wakes up in just that moment.

use crate::support::registry::Registry;
use crate::support::sync::lock;
use hsa_abi::{AmdQueue, Queue, SignalHandle, SignalValue};
use std::mem::offset_of;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicU16, AtomicU64, AtomicUsize, Ordering};

/// A doorbell's store, ROCr's.
pub type Ring = unsafe extern "C" fn(SignalHandle, SignalValue);

/// Packets that ROCr gets at once, at most: half of what its buffer holds.
const LARGEST: u64 = 128;
/// `HSA_PACKET_TYPE_INVALID`.
pub const INVALID: u16 = 1;

/// A packet whose header is kept back.
struct Held {
    index: u64,
    header: u16,
}

struct Doorbell {
    queue: AtomicPtr<Queue>,
    held: Mutex<Option<Held>>,
    /// The last packet that was held, for ROCr's handler, which must not wait for `held`: one more than its index.
    kept_index: AtomicU64,
    kept_header: AtomicU16,
}

/// By their signals.
static DOORBELLS: Registry<Doorbell> = Registry::new();
/// Doorbells that keep a packet back.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// Has the doorbell of an intercept queue watched, until [`remove`].
///
/// # Safety
/// `queue` is an intercept queue, alive until then.
pub unsafe fn add(queue: *mut Queue) {
    // SAFETY: the caller's promise.
    let signal = unsafe { (*queue).doorbell_signal };
    let take = |doorbell: &Doorbell| {
        doorbell.queue.store(queue, Ordering::Relaxed);
        doorbell.kept_index.store(0, Ordering::Relaxed);
        true
    };
    DOORBELLS.add(signal.0, take, || Doorbell {
        queue: AtomicPtr::new(queue),
        held: Mutex::default(),
        kept_index: AtomicU64::new(0),
        kept_header: AtomicU16::new(0),
    });
}

/// The header of a packet that ROCr has taken, where it was kept back while ROCr looked.
///
/// # Safety
/// `queue` is an intercept queue, alive.
#[cold]
pub unsafe fn header_kept_back(queue: *const Queue, index: u64) -> Option<u16> {
    // SAFETY: the caller's promise.
    let signal = unsafe { (*queue).doorbell_signal };
    let doorbell = &DOORBELLS.find(signal.0)?.value;
    (doorbell.kept_index.load(Ordering::Acquire) == index + 1)
        .then(|| doorbell.kept_header.load(Ordering::Relaxed))
}

/// The queue is about to be destroyed.
///
/// # Safety
/// `queue` is an intercept queue, still alive.
pub unsafe fn remove(queue: *mut Queue) {
    // SAFETY: the caller's promise.
    let signal = unsafe { (*queue).doorbell_signal };
    DOORBELLS.remove(signal.0, Doorbell::forget);
}

/// HSA is down: what was a doorbell may be any signal, or no memory, when it comes again.
pub fn remove_all() {
    DOORBELLS.clear(Doorbell::forget);
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
    fn forget(&self) {
        if lock(&self.held).take().is_some() {
            HELD.fetch_sub(1, Ordering::Relaxed);
        }
    }

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
                at(offset_of!(AmdQueue, read_dispatch_id)).load(Ordering::Acquire),
                at(offset_of!(AmdQueue, write_dispatch_id)).load(Ordering::Acquire),
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
                    // Returns when nobody looks for packets; who looks later sees the header that is there now.
                    ring(signal, kept.index as SignalValue - 1);
                    let taken = self.indices().0;
                    if taken < kept.index {
                        // ROCr waits for room underneath.
                        *held = Some(kept);
                        return;
                    }
                    HELD.fetch_sub(1, Ordering::Relaxed);
                    if taken == kept.index {
                        self.header(kept.index)
                            .store(kept.header, Ordering::Release);
                    }
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
                self.kept_header.store(header, Ordering::Relaxed);
                self.kept_index.store(cut + 1, Ordering::Release);
                self.header(cut).store(INVALID, Ordering::Release);
                HELD.fetch_add(1, Ordering::Relaxed);
                *held = Some(Held { index: cut, header });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An intercept queue of 8 packets (`amd_queue_t`, the ring), and how many packets ROCr takes at a ring.
    #[repr(C, align(64))]
    struct Model {
        queue: [u64; 32],
        ring: [[u64; 8]; 8],
    }

    static TAKES: AtomicU64 = AtomicU64::new(0);
    static QUEUE: AtomicPtr<Model> = AtomicPtr::new(std::ptr::null_mut());
    const READ: usize = offset_of!(AmdQueue, read_dispatch_id) / 8;
    const WRITE: usize = offset_of!(AmdQueue, write_dispatch_id) / 8;
    const SIGNAL: u64 = 0x1234_5600;
    const HEADER: u16 = 0x1502;

    /// As ROCr's: takes packets up to one that is not written, or as many as `TAKES` says, whatever their headers are.
    unsafe extern "C" fn ring(_: SignalHandle, _: SignalValue) {
        // SAFETY: the test's own, on its thread.
        let model = unsafe { &mut *QUEUE.load(Ordering::Relaxed) };
        let mut blind = TAKES.swap(0, Ordering::Relaxed);
        let mut read = model.queue[READ];
        loop {
            let slot = &mut model.ring[(read % 8) as usize][0];
            if read == model.queue[WRITE] || *slot as u16 == INVALID && blind == 0 {
                break;
            }
            *slot = INVALID.into();
            blind = blind.saturating_sub(1);
            read += 1;
        }
        model.queue[READ] = read;
    }

    #[test]
    fn a_header_goes_back_unless_its_packet_was_taken() {
        let model = Box::into_raw(Box::new(Model {
            queue: [0; 32],
            ring: [[INVALID.into(); 8]; 8],
        }));
        QUEUE.store(model, Ordering::Relaxed);
        let head = model.cast::<Queue>();
        // SAFETY: the model is alive to the end of the test, and its first field is the queue's.
        unsafe {
            (*head).base_address = (&raw mut (*model).ring).cast();
            (*head).doorbell_signal = SignalHandle(SIGNAL);
            (*head).size = 8;
            add(head);
            // 3 at a time (half of the queue, less one).
            let write = |count| {
                for _ in 0..count {
                    let index = (*model).queue[WRITE];
                    (*model).ring[(index % 8) as usize][0] = HEADER.into();
                    (*model).queue[WRITE] += 1;
                }
            };
            let headers = || (*model).ring.map(|packet| packet[0] as u16);
            write(8);
            store(SignalHandle(SIGNAL), 7, ring);
            assert_eq!(((*model).queue[READ], headers()), (8, [INVALID; 8]));
            assert!(!are_held());

            // ROCr has looked, and takes a packet more than it should see.
            write(8);
            TAKES.store(4, Ordering::Relaxed);
            store(SignalHandle(SIGNAL), 15, ring);
            assert_eq!(((*model).queue[READ], headers()), (16, [INVALID; 8]));
            assert!(!are_held());

            // ROCr waits for room, and takes no packet.
            unsafe extern "C" fn wait(_: SignalHandle, _: SignalValue) {}
            write(8);
            store(SignalHandle(SIGNAL), 23, wait);
            assert_eq!((headers()[3], are_held()), (INVALID, true));
            assert_eq!(header_kept_back(head, 19), Some(HEADER));
            assert_eq!(header_kept_back(head, 11), None);
            assert!(!pump(ring));
            assert_eq!(((*model).queue[READ], headers()), (24, [INVALID; 8]));
            remove(head);
            assert!(DOORBELLS.find(SIGNAL).is_none());
            add(head);
            remove_all();
            assert!(DOORBELLS.find(SIGNAL).is_none());
            drop(Box::from_raw(model));
        }
    }
}
