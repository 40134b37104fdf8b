//! Doorbells of intercept queues. ROCr 7.2.4 takes all packets that are available in one batch, and has two bugs with
//! large batches (llvm-tests/trace/overflow.test): it copies a batch that wraps around the end of the ring into a
//! buffer of 256 packets, and if a batch fills the underlying hardware queue, the wake-up for the rest of the batch is
//! lost. A tool that adds packets would make both more likely. Therefore a doorbell passes only a few packets to ROCr
//! at a time: it replaces the header of the next packet with "invalid" (withholds the packet) until ROCr has taken
//! those in front of it.
//!
//! After ROCr has waited for space in the underlying queue, it reads the ring on its own thread, possibly at the moment
//! when a packet is being withheld. It takes all packets that it has found, even one whose header was replaced
//! meanwhile. The packet handler then gets the original header from [`withheld_header`], and the doorbell does not
//! write to this slot of the ring again, because it may already contain another packet.
//!
//! One race remains that no tool can prevent: a program writes many packets before it rings the doorbell, and at that
//! moment ROCr, which waits for space in the underlying queue, wakes up.

use super::tables::saved;
use crate::support::registry::Registry;
use crate::support::sync::lock;
use hsa_abi::{AmdQueue, Queue, SignalHandle, SignalValue};
use std::mem::offset_of;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, AtomicU16, AtomicU64, AtomicUsize, Ordering};

/// ROCr's function that stores to a signal.
pub type StoreSignal = unsafe extern "C" fn(SignalHandle, SignalValue);

/// The maximum number of packets that ROCr gets at once: half of the size of its buffer.
const MAX_BATCH: u64 = 128;
/// `HSA_PACKET_TYPE_INVALID`, as the header of a packet.
pub const INVALID: u16 = 1;

/// A packet whose header is [`INVALID`] in the ring for now.
struct WithheldPacket {
    index: u64,
    header: u16,
}

struct Doorbell {
    queue: AtomicPtr<Queue>,
    withheld: Mutex<Option<WithheldPacket>>,
    /// A copy of the index of the last withheld packet, plus 1. ROCr's packet handler reads it, which must not wait for
    /// `withheld`.
    last_withheld_end: AtomicU64,
    /// A copy of the header of the last withheld packet.
    last_withheld_header: AtomicU16,
    /// The index after the last packet that ROCr had not taken when its doorbell was rung.
    delayed_end: AtomicU64,
}

/// By signal.
static DOORBELLS: Registry<Doorbell> = Registry::new();
/// The number of doorbells that withhold a packet.
static WITHHOLDING: AtomicUsize = AtomicUsize::new(0);

/// Registers the doorbell of an intercept queue, until [`remove`].
///
/// # Safety
/// `queue` is an intercept queue and exists until then.
pub unsafe fn add(queue: *mut Queue) {
    // SAFETY: the caller's promise.
    let signal = unsafe { (*queue).doorbell_signal };
    let reuse = |doorbell: &Doorbell| {
        doorbell.queue.store(queue, Ordering::Relaxed);
        doorbell.last_withheld_end.store(0, Ordering::Relaxed);
        doorbell.delayed_end.store(0, Ordering::Relaxed);
        true
    };
    DOORBELLS.add(signal.0, reuse, || Doorbell {
        queue: AtomicPtr::new(queue),
        withheld: Mutex::default(),
        last_withheld_end: AtomicU64::new(0),
        last_withheld_header: AtomicU16::new(0),
        delayed_end: AtomicU64::new(0),
    });
}

/// The original header of a packet that ROCr has taken, if the packet was withheld while ROCr read the ring.
///
/// # Safety
/// `queue` is an intercept queue that is not destroyed.
#[cold]
pub unsafe fn withheld_header(queue: *const Queue, index: u64) -> Option<u16> {
    // SAFETY: the caller's promise.
    let signal = unsafe { (*queue).doorbell_signal };
    let doorbell = &DOORBELLS.find(signal.0)?.value;
    (doorbell.last_withheld_end.load(Ordering::Acquire) == index + 1)
        .then(|| doorbell.last_withheld_header.load(Ordering::Relaxed))
}

/// The queue is about to be destroyed.
///
/// # Safety
/// `queue` is an intercept queue that is not yet destroyed.
pub unsafe fn remove(queue: *mut Queue) {
    // SAFETY: the caller's promise.
    let signal = unsafe { (*queue).doorbell_signal };
    DOORBELLS.remove(signal.0, Doorbell::forget_withheld);
}

/// HSA was shut down: the handles of doorbells may become handles of other signals, or invalid.
pub fn remove_all() {
    DOORBELLS.clear(Doorbell::forget_withheld);
}

/// Stores to a signal if it is a doorbell. Returns whether it is.
///
/// # Safety
/// As for `store_signal`, ROCr's function that the program called.
pub unsafe fn store(signal: SignalHandle, value: SignalValue, store_signal: StoreSignal) -> bool {
    let Some(doorbell) = DOORBELLS.find(signal.0) else {
        return false;
    };
    // SAFETY: a program stores to a doorbell only while its queue exists.
    unsafe { doorbell.value.ring(signal, value, store_signal) };
    true
}

/// Whether a doorbell withholds a packet.
pub fn has_withheld() -> bool {
    WITHHOLDING.load(Ordering::Relaxed) != 0
}

/// Packets that ROCr has not taken yet although their doorbell was rung: they are withheld, or ROCr waits for space in
/// the underlying queue. For each doorbell, the signal and the index after the last such packet.
pub fn delayed() -> Vec<(u64, u64)> {
    // No queue is destroyed while the guard is held.
    let (_guard, doorbells) = DOORBELLS.all();
    doorbells
        .filter(|doorbell| doorbell.key() != 0)
        .map(|doorbell| {
            let end = doorbell.value.delayed_end.load(Ordering::Acquire);
            (doorbell, end)
        })
        // SAFETY: the queue is registered, so it is not destroyed.
        .filter(|(doorbell, end)| unsafe { doorbell.value.indices() }.0 < *end)
        .map(|(doorbell, end)| (doorbell.key(), end))
        .collect()
}

/// Whether ROCr has taken the packets that [`delayed`] returned.
pub fn were_taken(packets: &[(u64, u64)]) -> bool {
    let (_guard, mut doorbells) = DOORBELLS.all();
    doorbells.all(|doorbell| {
        let key = doorbell.key();
        let end = packets
            .iter()
            .find(|(signal, _)| *signal == key && key != 0);
        // SAFETY: the queue is registered, so it is not destroyed.
        end.is_none_or(|&(_, end)| unsafe { doorbell.value.indices() }.0 >= end)
    })
}

/// Passes the withheld packets to ROCr, as far as it takes them. Returns whether packets are still withheld.
pub fn submit_withheld() -> bool {
    saved().is_some_and(|saved| submit_withheld_with(saved.core.hsa_signal_store_screlease))
}

fn submit_withheld_with(store_signal: StoreSignal) -> bool {
    if !has_withheld() {
        return false;
    }
    // No queue is destroyed while the guard is held.
    let (_guard, doorbells) = DOORBELLS.all();
    for doorbell in doorbells {
        let signal = SignalHandle(doorbell.key());
        let mut withheld = lock(&doorbell.value.withheld);
        if withheld.is_some() && signal.0 != 0 {
            // SAFETY: the queue is registered, so it is not destroyed; the function is ROCr's.
            unsafe {
                doorbell
                    .value
                    .submit_batches(signal, &mut withheld, store_signal)
            };
        }
    }
    has_withheld()
}

/// The index of the next packet that ROCr takes, and the index of the next packet that the program writes.
///
/// # Safety
/// The queue is not destroyed.
pub unsafe fn indices(queue: *const Queue) -> (u64, u64) {
    let queue = queue.cast::<u8>();
    // SAFETY: an `hsa_queue_t` is the beginning of an `amd_queue_t` (amd_hsa_queue.h), whose indices are atomic.
    unsafe {
        let at = |offset| &*queue.add(offset).cast::<AtomicU64>();
        (
            at(offset_of!(AmdQueue, read_dispatch_id)).load(Ordering::Acquire),
            at(offset_of!(AmdQueue, write_dispatch_id)).load(Ordering::Acquire),
        )
    }
}

impl Doorbell {
    fn forget_withheld(&self) {
        if lock(&self.withheld).take().is_some() {
            WITHHOLDING.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// See [`indices`].
    ///
    /// # Safety
    /// The queue is not destroyed.
    unsafe fn indices(&self) -> (u64, u64) {
        // SAFETY: the caller's promise.
        unsafe { indices(self.queue.load(Ordering::Relaxed)) }
    }

    /// The header of a packet in the ring.
    ///
    /// # Safety
    /// The queue is not destroyed.
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

    /// The maximum number of packets to pass to ROCr at once.
    ///
    /// # Safety
    /// The queue is not destroyed.
    unsafe fn limit(&self) -> u64 {
        // SAFETY: the caller's promise.
        let size = u64::from(unsafe { (*self.queue.load(Ordering::Relaxed)).size });
        // Each packet may become two, and there must be fewer of those than slots in the queue.
        (size / 2).saturating_sub(1).clamp(1, MAX_BATCH)
    }

    /// The program rings the doorbell.
    ///
    /// # Safety
    /// The queue is not destroyed, `signal` is its doorbell, and `store_signal` is ROCr's.
    unsafe fn ring(&self, signal: SignalHandle, value: SignalValue, store_signal: StoreSignal) {
        // SAFETY: the caller's promise.
        unsafe {
            let (read, write) = self.indices();
            if write.saturating_sub(read) <= self.limit() && !has_withheld() {
                store_signal(signal, value);
            } else {
                self.submit_batches(signal, &mut lock(&self.withheld), store_signal);
            }
            let end = (value as u64).wrapping_add(1).min(write);
            if self.indices().0 < end {
                self.delayed_end.fetch_max(end, Ordering::AcqRel);
            }
        }
    }

    /// Passes the packets to ROCr in batches, until ROCr has all of them or does not take the next one.
    ///
    /// # Safety
    /// As for [`Doorbell::ring`].
    unsafe fn submit_batches(
        &self,
        signal: SignalHandle,
        withheld: &mut Option<WithheldPacket>,
        store_signal: StoreSignal,
    ) {
        // SAFETY: the caller's promise.
        unsafe {
            loop {
                if let Some(packet) = withheld.take() {
                    // When this returns, no thread reads the ring. A thread that reads it later sees the current
                    // header.
                    store_signal(signal, packet.index as SignalValue - 1);
                    let read = self.indices().0;
                    if read < packet.index {
                        // ROCr waits for space in the underlying queue.
                        *withheld = Some(packet);
                        return;
                    }
                    WITHHOLDING.fetch_sub(1, Ordering::Relaxed);
                    if read == packet.index {
                        self.header(packet.index)
                            .store(packet.header, Ordering::Release);
                    }
                }
                let (read, write) = self.indices();
                let end = read + self.limit();
                if write <= end {
                    store_signal(signal, write as SignalValue - 1);
                    return;
                }
                let header = self.header(end).load(Ordering::Acquire);
                if header & 0xff == INVALID {
                    // Another thread has not written this packet yet, and rings the doorbell when it has.
                    store_signal(signal, write as SignalValue - 1);
                    return;
                }
                self.last_withheld_header.store(header, Ordering::Relaxed);
                self.last_withheld_end.store(end + 1, Ordering::Release);
                self.header(end).store(INVALID, Ordering::Release);
                WITHHOLDING.fetch_add(1, Ordering::Relaxed);
                *withheld = Some(WithheldPacket { index: end, header });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An intercept queue of 8 packets: its `amd_queue_t` and its ring.
    #[repr(C, align(64))]
    struct Model {
        queue: [u64; 32],
        ring: [[u64; 8]; 8],
    }

    /// The number of packets that [`store_signal`] takes next regardless of their headers.
    static UNCHECKED: AtomicU64 = AtomicU64::new(0);
    static QUEUE: AtomicPtr<Model> = AtomicPtr::new(std::ptr::null_mut());
    const READ: usize = offset_of!(AmdQueue, read_dispatch_id) / 8;
    const WRITE: usize = offset_of!(AmdQueue, write_dispatch_id) / 8;
    const SIGNAL: u64 = 0x1234_5600;
    const HEADER: u16 = 0x1502;

    /// Like ROCr's: takes all packets in front of the first invalid one, except for [`UNCHECKED`].
    unsafe extern "C" fn store_signal(_: SignalHandle, _: SignalValue) {
        // SAFETY: only this test's thread uses the model.
        let model = unsafe { &mut *QUEUE.load(Ordering::Relaxed) };
        let mut unchecked = UNCHECKED.swap(0, Ordering::Relaxed);
        let mut read = model.queue[READ];
        loop {
            let slot = &mut model.ring[(read % 8) as usize][0];
            if read == model.queue[WRITE] || *slot as u16 == INVALID && unchecked == 0 {
                break;
            }
            *slot = INVALID.into();
            unchecked = unchecked.saturating_sub(1);
            read += 1;
        }
        model.queue[READ] = read;
    }

    #[test]
    fn a_withheld_header_is_restored_unless_its_packet_was_taken() {
        let model = Box::into_raw(Box::new(Model {
            queue: [0; 32],
            ring: [[INVALID.into(); 8]; 8],
        }));
        QUEUE.store(model, Ordering::Relaxed);
        let queue = model.cast::<Queue>();
        // SAFETY: the model exists until the end of the test, and starts with the queue.
        unsafe {
            (*queue).base_address = (&raw mut (*model).ring).cast();
            (*queue).doorbell_signal = SignalHandle(SIGNAL);
            (*queue).size = 8;
            add(queue);
            // The limit is 3 packets: half of the queue, minus one.
            let write = |count| {
                for _ in 0..count {
                    let index = (*model).queue[WRITE];
                    (*model).ring[(index % 8) as usize][0] = HEADER.into();
                    (*model).queue[WRITE] += 1;
                }
            };
            let headers = || (*model).ring.map(|packet| packet[0] as u16);
            write(8);
            store(SignalHandle(SIGNAL), 7, store_signal);
            assert_eq!(((*model).queue[READ], headers()), (8, [INVALID; 8]));
            assert!(!has_withheld());

            // ROCr has read the ring before, and takes one packet more than it would find now.
            write(8);
            UNCHECKED.store(4, Ordering::Relaxed);
            store(SignalHandle(SIGNAL), 15, store_signal);
            assert_eq!(((*model).queue[READ], headers()), (16, [INVALID; 8]));
            assert!(!has_withheld());

            // ROCr waits for space, and takes no packet.
            unsafe extern "C" fn wait(_: SignalHandle, _: SignalValue) {}
            write(8);
            store(SignalHandle(SIGNAL), 23, wait);
            assert_eq!((headers()[3], has_withheld()), (INVALID, true));
            let packets = delayed();
            assert_eq!(packets, [(SIGNAL, 24)]);
            assert!(!were_taken(&packets));
            assert_eq!(withheld_header(queue, 19), Some(HEADER));
            assert_eq!(withheld_header(queue, 11), None);
            assert!(!submit_withheld_with(store_signal));
            assert_eq!(((*model).queue[READ], headers()), (24, [INVALID; 8]));
            assert!(were_taken(&packets) && delayed().is_empty());
            remove(queue);
            assert!(DOORBELLS.find(SIGNAL).is_none());
            add(queue);
            remove_all();
            assert!(DOORBELLS.find(SIGNAL).is_none());
            drop(Box::from_raw(model));
        }
    }
}
