//! The program's own completion signals of dispatches and copies in flight ("watched signals").
//!
//! When a packet or a copy completes, its completion signal contains its times. The program may change, reuse or
//! destroy the signal before the completion thread has read them. Therefore devprof hooks the functions that change or
//! destroy a signal. The hook *captures* the watch first: on the program's thread, it copies the value and the times.
//! Afterwards the completion thread takes the copy and does not access the signal.
//!
//! Launching threads and hooks take no lock, allocate nothing and make no system call, except for a hook that waits for
//! a reader (below). A watch has a [`Slot`], which is in one [`Phase`] at a time. The [`Table`] finds the slot of a
//! signal in a [`Bucket`] of one cache line. A captured watch leaves its bucket at once, so the program can use the
//! signal for the next packet.
//!
//! **A signal that is changed during a read.** The completion thread reads the signal first. Then it takes the watch
//! with a compare-and-swap, which fails if the watch was captured meanwhile. In this case it discards the result.
//!
//! **A signal that is destroyed during a read.** ROCr's ordinary signals stay mapped until HSA is shut down
//! (`SharedSignalPool_t`, signal.cpp), but the memory of a signal for other processes is unmapped when the signal is
//! destroyed (`LocalSignal` with `exportable`). Therefore the completion thread publishes which signal it reads, and
//! then checks that the signal is still watched. A thread that destroys a signal captures the watch first, and then
//! waits while that signal is being read. The reader holds no lock that the waiting thread could hold, makes no system
//! call for a dispatch, and calls only `hsa_amd_profiling_get_async_copy_time` for a copy. The waiting thread yields
//! and then sleeps, so it cannot starve the reader whatever its priority is.
//!
//! **Signals that are completed by others, too.** A signal with a value other than 1 is not watched. If a watched
//! signal is used for another packet or changed before it is complete, or its value is negative when it is captured or
//! read, the times are unknown. They are also unknown if a dispatch did not change the signal's end time. Changes that
//! do not go through HSA's functions (`hsa_amd_signal_value_pointer`) are not observed.

use crate::amd::signals;
use crate::sys::prefetch::prefetch_for_write;
use crate::trace::queues::atomics::{AtomicU32, AtomicU64, Ordering, fence, yield_now};
use hsa_abi::{DispatchTime, SignalHandle};
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// This process's table. Created when the trace starts, and never dropped: threads may be in a hook at any time.
static TABLE: OnceLock<Table> = OnceLock::new();
/// Signals have been watched. A relaxed access is enough: a program changes a signal only after it has observed its
/// completion, and the GPU completes it after the packet was submitted.
static IN_USE: AtomicBool = AtomicBool::new(false);

struct HsaSignals;

impl ReadSignal for HsaSignals {
    fn value(&self, signal: SignalHandle) -> Option<i64> {
        signals::user_value(signal)
    }

    fn raw_time(&self, signal: SignalHandle) -> DispatchTime {
        signals::raw_time(signal)
    }

    fn copy_time(&self, signal: SignalHandle) -> Option<DispatchTime> {
        signals::copy_time(signal)
    }
}

/// Allocates the table. Before that, [`watch`] returns `None`.
pub fn start() {
    TABLE.get_or_init(Table::default);
}

/// Watches the completion signal of a packet or a copy that the calling thread is about to submit; see
/// [`Table::watch`]. Call [`changing`] for a completion signal that is not to be watched.
pub fn watch(signal: SignalHandle, kind: Kind) -> Option<Watch> {
    let watch = TABLE.get()?.watch(&HsaSignals, signal, kind);
    if watch.is_some() && !IN_USE.load(Ordering::Relaxed) {
        IN_USE.store(true, Ordering::Relaxed);
    }
    watch
}

/// The result of a watch if it is complete, which releases the watch. The caller holds the session's lock, and HSA is
/// initialized.
pub fn poll(watch: Watch) -> Option<Completed> {
    TABLE.get()?.poll(&HsaSignals, watch)
}

/// To be called after calls of [`poll`].
pub fn give_back() {
    if let Some(table) = TABLE.get() {
        table.give_back();
    }
}

/// Ends a watch whose result is not needed. Any thread may call this.
pub fn release(watch: Watch) {
    if let Some(table) = TABLE.get() {
        table.release(watch);
    }
}

/// Whether signals have been watched.
pub fn were_used() -> bool {
    IN_USE.load(Ordering::Relaxed)
}

/// Calls `work` with the table if signals have been watched.
#[inline]
fn if_in_use(work: impl FnOnce(&Table)) {
    if IN_USE.load(Ordering::Relaxed)
        && let Some(table) = TABLE.get()
    {
        work(table);
    }
}

/// The calling thread is about to change the value of a signal, or submits a packet that will.
#[inline]
pub fn changing(signal: SignalHandle) {
    if_in_use(|table| table.changing(&HsaSignals, signal));
}

/// The calling thread may change the value of a signal, if it is the expected one. If it does, it calls
/// [`changed`].
pub fn comparing(signal: SignalHandle) {
    if_in_use(|table| table.comparing(&HsaSignals, signal));
}

/// The calling thread has changed the value of a signal, which was `old`, after [`comparing`].
pub fn changed(signal: SignalHandle, old: i64) {
    if_in_use(|table| table.changed(&HsaSignals, signal, old));
}

/// The calling thread is about to destroy a signal.
pub fn destroying(signal: SignalHandle) {
    if_in_use(|table| table.destroying(&HsaSignals, signal));
}

/// The work that completes a watched signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A packet in a queue with profiling. Its times are ticks of the agent's clock.
    Dispatch,
    /// `hsa_amd_memory_async_copy` and similar functions, with profiling of copies enabled. The times are ticks of the
    /// system clock.
    Copy,
}

/// A signal that is being watched. Its owner must pass it to [`Table::poll`] until that returns a result, or to
/// [`Table::release`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watch(u32);

impl Watch {
    /// The watch as a number, for code that does not know this type.
    pub fn number(self) -> u32 {
        self.0
    }

    /// The watch with this [`Watch::number`].
    pub fn from_number(number: u32) -> Watch {
        Watch(number)
    }
}

/// The result of a complete watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completed {
    /// See [`Kind`]. `None`: unknown.
    pub time: Option<DispatchTime>,
    /// The times that the packet processor has written to the signal of a [`Kind::Copy`] that a kernel of ROCr executed, in
    /// ticks of the agent's clock; 0 if that is unknown.
    pub raw: DispatchTime,
}

/// Reads signals: HSA's, or a test model's.
pub trait ReadSignal {
    /// The value, loaded with acquire order. `None`: the signal cannot be watched (for example a doorbell).
    fn value(&self, signal: SignalHandle) -> Option<i64>;
    /// The times that the packet processor has written to the signal.
    fn raw_time(&self, signal: SignalHandle) -> DispatchTime;
    /// The times of the copy that has completed the signal.
    fn copy_time(&self, signal: SignalHandle) -> Option<DispatchTime>;
}

/// The state of a slot, the lowest bits of [`Slot::state`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
enum Phase {
    /// In the list of free slots, or owned by one thread.
    Free,
    /// In a bucket, or about to be added to it.
    Watched,
    /// A hook is copying the signal's value and times.
    Capturing,
    /// The slot contains the result.
    Captured,
    /// The owner has released the slot while a hook was copying. The hook frees the slot.
    Abandoned,
}

const PHASE_BITS: u32 = 3;

impl Phase {
    fn of(state: u64) -> Phase {
        let all = [
            Phase::Free,
            Phase::Watched,
            Phase::Capturing,
            Phase::Captured,
        ];
        let number = (state & ((1 << PHASE_BITS) - 1)) as usize;
        all.get(number).copied().unwrap_or(Phase::Abandoned)
    }

    /// A state with this phase and the generation of `state`.
    fn with_generation_of(self, state: u64) -> u64 {
        state >> PHASE_BITS << PHASE_BITS | self as u64
    }
}

/// The data of one watch. A cache line.
#[repr(align(64))]
#[derive(Default)]
struct Slot {
    /// The generation (how often the slot was used) and a [`Phase`]. The generation prevents a thread from changing the
    /// state of a later watch.
    state: AtomicU64,
    signal: AtomicU64,
    /// Whether [`Kind::Copy`].
    is_copy: AtomicU32,
    /// The next free slot, plus 1.
    next: AtomicU32,
    /// Before completion: the signal's end time at the submission. Afterwards: the end.
    end: AtomicU64,
    start: AtomicU64,
    /// In [`Phase::Captured`]: whether the times are known.
    is_known: AtomicU32,
    /// [`Completed::raw`].
    raw_start: AtomicU64,
    raw_end: AtomicU64,
}

/// Watched signals with the same hash. 0, or the result of [`word`]. One cache line.
#[repr(align(64))]
#[derive(Default)]
struct Bucket([AtomicU64; WAYS]);

#[cfg(not(all(test, feature = "loom")))]
mod size {
    pub const SLOTS: usize = 16384;
    /// A power of two.
    pub const BUCKETS: usize = 4096;
    pub const WAYS: usize = 8;
    /// How many freed slots are added to the stack together.
    pub const FREED: u32 = 64;
}
#[cfg(all(test, feature = "loom"))]
mod size {
    pub const SLOTS: usize = 2;
    pub const BUCKETS: usize = 1;
    pub const WAYS: usize = 2;
    pub const FREED: u32 = 1;
}
use size::*;

/// The handle of a signal is the address of a struct with this alignment (`amd_signal_t`).
const SIGNAL_ALIGNMENT_BITS: u32 = 6;
/// How many adjacent signals have the same bucket.
const GROUP: usize = WAYS / 2;
const SLOT_BITS: u32 = 16;
const _: () = assert!(SLOTS <= 1 << SLOT_BITS);

/// The word for a signal in slot 0; `None` if the handle is not the address of a signal. The lowest bits are the slot.
fn word(signal: SignalHandle) -> Option<u64> {
    let number = signal.0 >> SIGNAL_ALIGNMENT_BITS;
    let is_exact = number << SIGNAL_ALIGNMENT_BITS == signal.0
        && number != 0
        && number << SLOT_BITS >> SLOT_BITS == number;
    is_exact.then_some(number << SLOT_BITS)
}

/// The slot in a word, if it is the word of `signal`.
fn slot_in(word: u64, signal: SignalHandle) -> Option<u32> {
    (word != 0 && word >> SLOT_BITS == signal.0 >> SIGNAL_ALIGNMENT_BITS)
        .then_some((word & ((1 << SLOT_BITS) - 1)) as u32)
}

/// How often a thread that destroys a signal yields before it sleeps, if the signal is being read.
const YIELDS_BEFORE_SLEEP: u32 = 20;
/// How long it sleeps each time.
const READ_PAUSE: Duration = Duration::from_micros(50);

/// All watched signals.
pub struct Table {
    buckets: Box<[Bucket]>,
    slots: Box<[Slot]>,
    /// A stack of free slots: the number of the first one plus 1, and in the upper half how often the stack was
    /// changed.
    free: OwnLine<AtomicU64>,
    /// Free slots that are not in the stack yet.
    freed: OwnLine<Freed>,
    /// The signal that the completion thread is reading, or 0.
    being_read: OwnLine<AtomicU64>,
}

/// Slots that [`Table::poll`] has freed: a list by [`Slot::next`]. They are added to the stack together, because each
/// access takes the stack's cache line from the launching threads. Only the thread that polls accesses the list.
#[derive(Default)]
struct Freed {
    /// The number of the first slot plus 1, 0 if the list is empty.
    first: AtomicU32,
    last: AtomicU32,
    count: AtomicU32,
}

/// A value in cache lines of its own: other threads often write it. Processors fetch lines in pairs.
#[repr(align(128))]
struct OwnLine<T>(T);

impl Default for Table {
    fn default() -> Table {
        let slots: Box<[Slot]> = (0..SLOTS).map(|_| Slot::default()).collect();
        for (number, slot) in slots.iter().enumerate() {
            let next = (number + 2) as u32 % (SLOTS as u32 + 1);
            slot.next.store(next, Ordering::Relaxed);
        }
        Table {
            buckets: (0..BUCKETS).map(|_| Bucket::default()).collect(),
            slots,
            free: OwnLine(AtomicU64::new(1)),
            freed: OwnLine(Freed::default()),
            being_read: OwnLine(AtomicU64::new(0)),
        }
    }
}

impl Table {
    /// Watches the completion signal of a packet or a copy that the calling thread is about to submit. `None`: this
    /// signal cannot be watched, or the table is full. An earlier watch of the same signal ends.
    pub fn watch(
        &self,
        signals: &impl ReadSignal,
        signal: SignalHandle,
        kind: Kind,
    ) -> Option<Watch> {
        let entry = word(signal)?;
        let slot = match signals.value(signal) {
            Some(1) => self.pop_free(),
            _ => None,
        };
        let Some(number) = slot else {
            self.changing(signals, signal);
            return None;
        };
        let watch = Watch(number);
        let slot = &self.slots[number as usize];
        slot.signal.store(signal.0, Ordering::Relaxed);
        let is_copy = kind == Kind::Copy;
        slot.is_copy.store(is_copy.into(), Ordering::Relaxed);
        let end = signals.raw_time(signal).end;
        slot.end.store(end, Ordering::Relaxed);
        let generation = (slot.state.load(Ordering::Relaxed) >> PHASE_BITS) + 1;
        let watched = generation << PHASE_BITS | Phase::Watched as u64;
        slot.state.store(watched, Ordering::Release);
        let bucket = self.bucket(signal);
        let entry = entry | u64::from(number);
        let is_added = bucket.0.iter().any(|way| {
            way.load(Ordering::Relaxed) == 0
                && way
                    .compare_exchange(0, entry, Ordering::SeqCst, Ordering::Relaxed)
                    .is_ok()
        });
        if !is_added {
            self.release(watch);
            self.changing(signals, signal);
            return None;
        }
        sequentially_consistent();
        // Of two threads that watch the same signal at the same time, at least one finds the other's entry.
        let mut is_shared = false;
        for other in self.slots_of(signal).filter(|&other| other != number) {
            is_shared |= self.capture(signals, other, signal, None);
        }
        // Otherwise another thread submits a packet with the same signal, or changes it. It may have found the slot in an
        // entry of an earlier watch, before this one was added.
        if is_shared || slot.state.load(Ordering::SeqCst) != watched {
            self.remove_from_bucket(number, signal);
            self.release(watch);
            return None;
        }
        Some(watch)
    }

    /// The result of a watch if it is complete, which releases it. Called by one thread at a time.
    pub fn poll(&self, signals: &impl ReadSignal, watch: Watch) -> Option<Completed> {
        let slot = &self.slots[watch.0 as usize];
        let state = slot.state.load(Ordering::Acquire);
        match Phase::of(state) {
            Phase::Watched => (),
            Phase::Captured => {
                let time = (slot.is_known.load(Ordering::Relaxed) != 0).then(|| DispatchTime {
                    start: slot.start.load(Ordering::Relaxed),
                    end: slot.end.load(Ordering::Relaxed),
                });
                let raw = DispatchTime {
                    start: slot.raw_start.load(Ordering::Relaxed),
                    end: slot.raw_end.load(Ordering::Relaxed),
                };
                self.end_generation(watch.0);
                self.keep_freed(watch.0);
                return Some(Completed { time, raw });
            }
            _ => return None,
        }
        let signal = SignalHandle(slot.signal.load(Ordering::Relaxed));
        self.being_read.0.store(signal.0, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        // From here on a thread that destroys the signal waits, unless it has already captured the watch.
        let completed = if slot.state.load(Ordering::Acquire) == state {
            self.read(signals, slot, signal, None)
        } else {
            None
        };
        // If the program has changed the signal meanwhile, it has captured the watch before.
        fence(Ordering::Acquire);
        let taken = completed.filter(|_| {
            let free = Phase::Free.with_generation_of(state);
            slot.state
                .compare_exchange(state, free, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
        });
        self.being_read.0.store(0, Ordering::Release);
        if taken.is_some() {
            self.remove_from_bucket(watch.0, signal);
            self.keep_freed(watch.0);
        }
        taken
    }

    /// Ends a watch whose result is not needed.
    pub fn release(&self, watch: Watch) {
        let slot = &self.slots[watch.0 as usize];
        let mut state = slot.state.load(Ordering::Acquire);
        loop {
            let phase = Phase::of(state);
            let next = match phase {
                Phase::Capturing => Phase::Abandoned,
                _ => Phase::Free,
            };
            let next = next.with_generation_of(state);
            let change =
                slot.state
                    .compare_exchange(state, next, Ordering::AcqRel, Ordering::Acquire);
            match change {
                Ok(_) => {
                    if phase == Phase::Watched {
                        let signal = SignalHandle(slot.signal.load(Ordering::Relaxed));
                        self.remove_from_bucket(watch.0, signal);
                    }
                    if phase != Phase::Capturing {
                        self.push_free(watch.0, watch.0);
                    }
                    return;
                }
                Err(now) => state = now,
            }
        }
    }

    /// The calling thread is about to change the value of a signal, or submits a packet that will.
    #[inline]
    pub fn changing(&self, signals: &impl ReadSignal, signal: SignalHandle) {
        for number in self.slots_of(signal) {
            self.capture(signals, number, signal, None);
        }
    }

    /// The calling thread may change the value of a signal, if it is the expected one.
    #[inline]
    pub fn comparing(&self, signals: &impl ReadSignal, signal: SignalHandle) {
        for number in self.slots_of(signal) {
            if signals.value(signal).is_some_and(|value| value < 1) {
                self.capture(signals, number, signal, None);
            }
        }
    }

    /// The calling thread has changed the value of a signal, which was `old`.
    #[inline]
    pub fn changed(&self, signals: &impl ReadSignal, signal: SignalHandle, old: i64) {
        for number in self.slots_of(signal) {
            self.capture(signals, number, signal, Some(old));
        }
    }

    /// The calling thread is about to destroy a signal.
    pub fn destroying(&self, signals: &impl ReadSignal, signal: SignalHandle) {
        self.changing(signals, signal);
        // Also if the watch was captured by an earlier change: that does not wait for the reader.
        fence(Ordering::SeqCst);
        let mut yields = 0;
        while self.being_read.0.load(Ordering::Acquire) == signal.0 {
            if yields < YIELDS_BEFORE_SLEEP || cfg!(all(test, feature = "loom")) {
                yields += 1;
                yield_now();
            } else {
                std::thread::sleep(READ_PAUSE);
            }
        }
    }

    /// Adjacent signals have the same bucket: a program uses the signals of a pool in turn, and the completion thread has
    /// written to the bucket's cache line meanwhile, so the launching thread waits for the line once for several signals. They take
    /// half of it, because the pools of two regions of memory can have the same buckets.
    fn bucket(&self, signal: SignalHandle) -> &Bucket {
        let group = signal.0 as usize / (GROUP << SIGNAL_ALIGNMENT_BITS);
        &self.buckets[(group ^ (group / BUCKETS)) & (BUCKETS - 1)]
    }

    /// The slots in the signal's bucket that refer to it: the slot of its watch, and slots of earlier watches that a
    /// thread is about to remove.
    #[inline]
    fn slots_of(&self, signal: SignalHandle) -> impl Iterator<Item = u32> {
        let ways = self.bucket(signal).0.iter();
        ways.filter_map(move |way| slot_in(way.load(Ordering::SeqCst), signal))
    }

    /// The result that is in a signal; `None` if it is not complete. `old`: its value before the program changed it.
    fn read(
        &self,
        signals: &impl ReadSignal,
        slot: &Slot,
        signal: SignalHandle,
        old: Option<i64>,
    ) -> Option<Completed> {
        let value = old.or_else(|| signals.value(signal)).unwrap_or(i64::MIN);
        if value > 0 {
            return None;
        }
        let (mut time, mut raw) = (None, DispatchTime::default());
        if value == 0 {
            // Otherwise the times are from an earlier packet.
            let written = Some(signals.raw_time(signal))
                .filter(|time| time.end != slot.end.load(Ordering::Relaxed));
            if slot.is_copy.load(Ordering::Relaxed) != 0 {
                time = signals.copy_time(signal);
                raw = written.unwrap_or_default();
            } else {
                time = written;
            }
        }
        Some(Completed { time, raw })
    }

    /// Copies the signal's value and times to its slot. Returns false if the watch is already over.
    fn capture(
        &self,
        signals: &impl ReadSignal,
        number: u32,
        signal: SignalHandle,
        old: Option<i64>,
    ) -> bool {
        let slot = &self.slots[number as usize];
        let mut state = slot.state.load(Ordering::Acquire);
        let capturing = loop {
            let is_watched = Phase::of(state) == Phase::Watched;
            if !is_watched || slot.signal.load(Ordering::Relaxed) != signal.0 {
                return false;
            }
            let new = Phase::Capturing.with_generation_of(state);
            let change =
                slot.state
                    .compare_exchange(state, new, Ordering::SeqCst, Ordering::Acquire);
            match change {
                Ok(_) => break new,
                Err(now) => state = now,
            }
        };
        sequentially_consistent();
        // If `poll` reads a value that the program or the GPU writes after this call, its compare-and-swap fails.
        fence(Ordering::Release);
        let completed = self.read(signals, slot, signal, old);
        let raw = completed.map_or(DispatchTime::default(), |completed| completed.raw);
        let time = completed.and_then(|completed| completed.time);
        slot.raw_start.store(raw.start, Ordering::Relaxed);
        slot.raw_end.store(raw.end, Ordering::Relaxed);
        slot.is_known
            .store(time.is_some().into(), Ordering::Relaxed);
        let DispatchTime { start, end } = time.unwrap_or_default();
        slot.start.store(start, Ordering::Relaxed);
        slot.end.store(end, Ordering::Relaxed);
        self.remove_from_bucket(number, signal);
        let captured = Phase::Captured.with_generation_of(state);
        let is_abandoned = slot
            .state
            .compare_exchange(capturing, captured, Ordering::AcqRel, Ordering::Relaxed)
            .is_err();
        if is_abandoned {
            self.free_slot(number);
        }
        true
    }

    /// Removes a slot's entry, if it is there: a thread that captures a watch of an earlier entry may do so before the launching
    /// thread has added the new one, which then removes it.
    fn remove_from_bucket(&self, number: u32, signal: SignalHandle) {
        let Some(entry) = word(signal).map(|word| word | u64::from(number)) else {
            return;
        };
        for way in &self.bucket(signal).0 {
            if way.load(Ordering::SeqCst) == entry {
                // If this fails, another thread has removed the entry.
                let _ = way.compare_exchange(entry, 0, Ordering::AcqRel, Ordering::Relaxed);
            }
        }
    }

    fn end_generation(&self, number: u32) {
        let state = &self.slots[number as usize].state;
        let free = Phase::Free.with_generation_of(state.load(Ordering::Relaxed));
        state.store(free, Ordering::Relaxed);
    }

    fn free_slot(&self, number: u32) {
        self.end_generation(number);
        self.push_free(number, number);
    }

    /// Frees a slot. Called by the thread that polls.
    fn keep_freed(&self, number: u32) {
        let Freed { first, last, count } = &self.freed.0;
        let next = first.load(Ordering::Relaxed);
        if next == 0 {
            last.store(number, Ordering::Relaxed);
        }
        self.slots[number as usize]
            .next
            .store(next, Ordering::Relaxed);
        first.store(number + 1, Ordering::Relaxed);
        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        if count.load(Ordering::Relaxed) >= FREED {
            self.give_back();
        }
    }

    /// Makes all slots that were freed by [`Table::poll`] available. Called by the thread that polls.
    pub fn give_back(&self) {
        let Freed { first, last, count } = &self.freed.0;
        if let Some(number) = first.load(Ordering::Relaxed).checked_sub(1) {
            self.push_free(number, last.load(Ordering::Relaxed));
            first.store(0, Ordering::Relaxed);
            count.store(0, Ordering::Relaxed);
        }
    }

    /// Adds the list of slots from `first` to `last` to the stack.
    fn push_free(&self, first: u32, last: u32) {
        let mut head = self.free.0.load(Ordering::Relaxed);
        loop {
            let next = &self.slots[last as usize].next;
            next.store(head as u32, Ordering::Relaxed);
            let new = changed_head(head, first + 1);
            match self
                .free
                .0
                .compare_exchange_weak(head, new, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    fn pop_free(&self) -> Option<u32> {
        let mut head = self.free.0.load(Ordering::Acquire);
        loop {
            let number = (head as u32).checked_sub(1)?;
            let next = self.slots[number as usize].next.load(Ordering::Relaxed);
            let new = changed_head(head, next);
            match self
                .free
                .0
                .compare_exchange_weak(head, new, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => {
                    // The completion thread has written to the slot that the next launch gets.
                    if let Some(slot) = self.slots.get((next as usize).wrapping_sub(1)) {
                        prefetch_for_write(slot);
                    }
                    return Some(number);
                }
                Err(now) => head = now,
            }
        }
    }
}

/// Entries and states are written, and then read, with sequentially consistent accesses. Loom models only such fences.
fn sequentially_consistent() {
    if cfg!(all(test, feature = "loom")) {
        fence(Ordering::SeqCst);
    }
}

/// The head of the stack of free slots after a change.
fn changed_head(head: u64, first: u32) -> u64 {
    ((head >> 32) + 1) << 32 | u64::from(first)
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// One signal.
    #[derive(Default)]
    struct Model {
        value: Cell<i64>,
        start: Cell<u64>,
        end: Cell<u64>,
    }

    const SIGNAL: SignalHandle = SignalHandle(0x7f12_3456_7880);

    impl Model {
        fn complete(&self, start: u64, end: u64) {
            self.start.set(start);
            self.end.set(end);
            self.value.set(self.value.get() - 1);
        }
    }

    impl ReadSignal for Model {
        fn value(&self, _: SignalHandle) -> Option<i64> {
            Some(self.value.get())
        }
        fn raw_time(&self, _: SignalHandle) -> DispatchTime {
            DispatchTime {
                start: self.start.get(),
                end: self.end.get(),
            }
        }
        fn copy_time(&self, _: SignalHandle) -> Option<DispatchTime> {
            Some(DispatchTime { start: 1, end: 2 })
        }
    }

    fn known(start: u64, end: u64) -> Option<Completed> {
        let time = Some(DispatchTime { start, end });
        Some(Completed {
            time,
            raw: DispatchTime::default(),
        })
    }

    const UNKNOWN: Option<Completed> = Some(Completed {
        time: None,
        raw: DispatchTime { start: 0, end: 0 },
    });

    /// A table, and a signal that is watched in it.
    fn watched(kind: Kind) -> (Table, Model, Watch) {
        let (table, model) = (Table::default(), Model::default());
        model.value.set(1);
        let watch = table.watch(&model, SIGNAL, kind).expect("a watch");
        (table, model, watch)
    }

    #[test]
    fn the_times_are_read_once_complete() {
        let (table, model, watch) = watched(Kind::Dispatch);
        assert_eq!(table.poll(&model, watch), None);
        model.complete(10, 20);
        assert_eq!(table.poll(&model, watch), known(10, 20));
        assert_eq!(table.slots_of(SIGNAL).count(), 0);
        let (table, model, watch) = watched(Kind::Copy);
        model.complete(10, 20);
        let raw = DispatchTime { start: 10, end: 20 };
        let completed = known(1, 2).map(|completed| Completed { raw, ..completed });
        assert_eq!(table.poll(&model, watch), completed);
        // A copy engine does not write the times of a packet.
        let (table, model, watch) = watched(Kind::Copy);
        model.value.set(0);
        table.changing(&model, SIGNAL);
        assert_eq!(table.poll(&model, watch), known(1, 2));
    }

    #[test]
    fn a_signal_may_be_used_again_before_the_poll() {
        let (table, model, first) = watched(Kind::Dispatch);
        model.complete(10, 20);
        table.changing(&model, SIGNAL);
        model.value.set(1);
        let second = table.watch(&model, SIGNAL, Kind::Dispatch);
        let second = second.expect("a watch");
        model.complete(30, 40);
        table.destroying(&model, SIGNAL);
        model.value.set(-7);
        assert_eq!(table.poll(&model, second), known(30, 40));
        assert_eq!(table.poll(&model, first), known(10, 20));
    }

    #[test]
    fn the_times_of_a_signal_that_others_complete_are_unknown() {
        // Changed before it is complete.
        let (table, model, watch) = watched(Kind::Dispatch);
        table.changing(&model, SIGNAL);
        assert_eq!(table.poll(&model, watch), UNKNOWN);
        // Used for two packets, which complete it twice.
        let (table, model, watch) = watched(Kind::Dispatch);
        assert_eq!(table.watch(&model, SIGNAL, Kind::Dispatch), None);
        assert_eq!(table.poll(&model, watch), UNKNOWN);
        // Completed twice.
        let (table, model, watch) = watched(Kind::Dispatch);
        model.complete(10, 20);
        model.complete(30, 40);
        assert_eq!(table.poll(&model, watch), UNKNOWN);
        // Completed by something that writes no times.
        let (table, model, watch) = watched(Kind::Dispatch);
        model.complete(10, 20);
        assert_eq!(table.poll(&model, watch), known(10, 20));
        model.value.set(1);
        let watch = table.watch(&model, SIGNAL, Kind::Dispatch);
        let watch = watch.expect("a watch");
        model.value.set(0);
        assert_eq!(table.poll(&model, watch), UNKNOWN);
    }

    #[test]
    fn a_signal_with_another_value_is_not_watched() {
        let (table, model) = (Table::default(), Model::default());
        for value in [0, 2, -1] {
            model.value.set(value);
            assert_eq!(table.watch(&model, SIGNAL, Kind::Dispatch), None);
        }
        model.value.set(1);
        for handle in [0, SIGNAL.0 + 8, SIGNAL.0 | 1 << 60] {
            let signal = SignalHandle(handle);
            assert_eq!(table.watch(&model, signal, Kind::Dispatch), None);
        }
    }

    #[test]
    fn a_compare_and_swap_is_captured_if_it_changes_the_value() {
        let (table, model, watch) = watched(Kind::Dispatch);
        table.comparing(&model, SIGNAL);
        assert_eq!(table.poll(&model, watch), None);
        // The kernel ends between the two calls, and the compare-and-swap resets the signal.
        model.complete(10, 20);
        model.value.set(1);
        table.changed(&model, SIGNAL, 0);
        assert_eq!(table.poll(&model, watch), known(10, 20));
    }

    #[test]
    fn a_signal_whose_bucket_is_full_is_not_watched() {
        let (table, model) = (Table::default(), Model::default());
        model.value.set(1);
        // Adjacent signals have one bucket, and these have the same one.
        let group = (GROUP as u64) << SIGNAL_ALIGNMENT_BITS;
        let signals = (1..=WAYS as u64 + 2).map(|n| SignalHandle(n * (BUCKETS as u64 + 1) * group));
        let watches: Vec<_> = signals
            .map(|signal| table.watch(&model, signal, Kind::Dispatch))
            .collect();
        assert!(watches[..WAYS].iter().all(Option::is_some));
        assert_eq!(watches[WAYS..], [None; 2]);
        let watches = watches.into_iter().flatten();
        watches.for_each(|watch| table.release(watch));
        assert_eq!(std::iter::from_fn(|| table.pop_free()).count(), SLOTS);
    }

    #[test]
    fn the_signals_of_two_pools_with_the_same_buckets_are_watched() {
        const SIGNALS: u64 = 1000;
        let (table, model) = (Table::default(), Model::default());
        model.value.set(1);
        let distance = (BUCKETS * GROUP) as u64;
        for pool in [1, 2] {
            for n in 0..SIGNALS {
                let signal = SignalHandle((pool * distance + n) << SIGNAL_ALIGNMENT_BITS);
                assert!(table.watch(&model, signal, Kind::Dispatch).is_some());
            }
        }
    }

    #[test]
    fn slots_and_buckets_are_reused() {
        let (table, model) = (Table::default(), Model::default());
        model.value.set(1);
        let signal = |number: usize| SignalHandle(0x7f00_0000_0000 + (number << 6) as u64);
        for _ in 0..3 {
            let watches: Vec<_> = (0..2 * SLOTS)
                .filter_map(|number| table.watch(&model, signal(number), Kind::Dispatch))
                .collect();
            assert_eq!(watches.len(), SLOTS);
            watches.into_iter().for_each(|watch| table.release(watch));
        }
        let used = |bucket: &Bucket| bucket.0.iter().any(|way| way.load(Ordering::Relaxed) != 0);
        assert!(!table.buckets.iter().any(used));
        // Complete and captured watches, which are polled.
        model.value.set(1);
        let watches: Vec<_> = (0..1001)
            .filter_map(|number| table.watch(&model, signal(number), Kind::Dispatch))
            .collect();
        model.complete(10, 20);
        (0..500).for_each(|number| table.changing(&model, signal(number)));
        for &watch in &watches {
            assert_eq!(table.poll(&model, watch), known(10, 20));
        }
        table.give_back();
        table.give_back();
        assert_eq!(std::iter::from_fn(|| table.pop_free()).count(), SLOTS);
    }
}

/// Every interleaving of a program, which also acts as its GPU, and the completion thread.
#[cfg(all(test, feature = "loom"))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicBool;

    /// One signal. Its memory is unmapped when it is destroyed.
    struct Model {
        value: AtomicU64,
        start: AtomicU64,
        end: AtomicU64,
        /// Loom reports an access by another thread that is concurrent with the unmapping.
        memory: loom::cell::UnsafeCell<()>,
        is_destroyed: AtomicBool,
    }

    const SIGNAL: SignalHandle = SignalHandle(0x40);

    impl Model {
        fn access(&self) {
            self.memory.with(|_| ());
            assert!(
                !self.is_destroyed.load(Ordering::Relaxed),
                "a destroyed signal is read"
            );
        }

        /// The GPU executes a packet: times first, then the value.
        fn complete(&self, number: u64) {
            self.start.store(10 * number, Ordering::Relaxed);
            self.end.store(10 * number + 1, Ordering::Relaxed);
            self.value.store(0, Ordering::Release);
        }

        fn reset(&self) {
            self.value.store(1, Ordering::Relaxed);
        }

        fn destroy(&self) {
            self.memory.with_mut(|_| ());
            self.is_destroyed.store(true, Ordering::Relaxed);
        }
    }

    impl ReadSignal for Model {
        fn value(&self, _: SignalHandle) -> Option<i64> {
            self.access();
            Some(self.value.load(Ordering::Acquire) as i64)
        }
        fn raw_time(&self, _: SignalHandle) -> DispatchTime {
            self.access();
            DispatchTime {
                start: self.start.load(Ordering::Relaxed),
                end: self.end.load(Ordering::Relaxed),
            }
        }
        fn copy_time(&self, _: SignalHandle) -> Option<DispatchTime> {
            None
        }
    }

    struct Shared {
        table: Table,
        model: Model,
    }

    fn shared() -> Arc<Shared> {
        Arc::new(Shared {
            table: Table::default(),
            model: Model {
                value: AtomicU64::new(1),
                start: AtomicU64::new(0),
                end: AtomicU64::new(0),
                memory: loom::cell::UnsafeCell::new(()),
                is_destroyed: AtomicBool::new(false),
            },
        })
    }

    /// Runs the program on another thread.
    fn spawn<T: Send + 'static>(
        shared: &Arc<Shared>,
        program: impl FnOnce(&Table, &Model) -> T + Send + 'static,
    ) -> loom::thread::JoinHandle<T> {
        let shared = shared.clone();
        loom::thread::spawn(move || program(&shared.table, &shared.model))
    }

    /// No signal is watched, and all slots are free.
    fn assert_unused(table: &Table) {
        assert_eq!(table.slots_of(SIGNAL).count(), 0);
        assert_eq!(std::iter::from_fn(|| table.pop_free()).count(), SLOTS);
    }

    fn check(model: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(model);
    }

    fn time(number: u64) -> Option<Completed> {
        let (start, end) = (10 * number, 10 * number + 1);
        let time = Some(DispatchTime { start, end });
        Some(Completed {
            time,
            raw: DispatchTime::default(),
        })
    }

    /// The program launches two kernels with one signal, which it resets in between and destroys at the end.
    #[test]
    fn each_dispatch_gets_its_own_times() {
        check(|| {
            let shared = shared();
            let (table, model) = (&shared.table, &shared.model);
            let first = table.watch(model, SIGNAL, Kind::Dispatch).expect("a watch");
            let second = table.pop_free().expect("a slot");
            table.push_free(second, second);
            let program = spawn(&shared, |table, model| {
                model.complete(1);
                table.changing(model, SIGNAL);
                model.reset();
                let watch = table.watch(model, SIGNAL, Kind::Dispatch);
                model.complete(2);
                table.destroying(model, SIGNAL);
                model.destroy();
                watch
            });
            let polled = table.poll(model, first);
            assert!(polled.is_none() || polled == time(1), "{polled:?}");
            let second = program.join().unwrap().expect("a watch");
            if polled.is_none() {
                assert_eq!(table.poll(model, first), time(1));
            }
            assert_eq!(table.poll(model, second), time(2));
            assert_unused(table);
        });
    }

    /// The program resets the signal and then destroys it without another launch: the second call finds no watch.
    #[test]
    fn a_signal_is_not_read_after_its_destruction() {
        check(|| {
            let shared = shared();
            let (table, model) = (&shared.table, &shared.model);
            let watch = table.watch(model, SIGNAL, Kind::Dispatch).expect("a watch");
            let program = spawn(&shared, |table, model| {
                model.complete(1);
                table.changing(model, SIGNAL);
                model.reset();
                table.destroying(model, SIGNAL);
                model.destroy();
            });
            let polled = (0..2).find_map(|_| table.poll(model, watch));
            program.join().unwrap();
            assert_eq!(polled.or_else(|| table.poll(model, watch)), time(1));
        });
    }

    /// A thread changes the signal, and finds the entry of a watch that ends meanwhile. The next watch has the same signal and the
    /// same slot.
    #[test]
    fn an_entry_of_an_earlier_watch_may_be_found() {
        check(|| {
            let shared = shared();
            let (table, model) = (&shared.table, &shared.model);
            let first = table.watch(model, SIGNAL, Kind::Dispatch).expect("a watch");
            let other = spawn(&shared, |table, model| table.changing(model, SIGNAL));
            table.release(first);
            let second = table.watch(model, SIGNAL, Kind::Dispatch);
            other.join().unwrap();
            second.into_iter().for_each(|watch| table.release(watch));
            assert_unused(table);
        });
    }

    /// The owner releases the watch while the program changes the signal.
    #[test]
    fn a_released_slot_is_free_once() {
        check(|| {
            let shared = shared();
            let (table, model) = (&shared.table, &shared.model);
            let watch = table.watch(model, SIGNAL, Kind::Dispatch).expect("a watch");
            let program = spawn(&shared, |table, model| {
                model.complete(1);
                table.changing(model, SIGNAL);
                model.reset();
                table.watch(model, SIGNAL, Kind::Dispatch)
            });
            table.release(watch);
            let second = program.join().unwrap().expect("a watch");
            table.release(second);
            assert_unused(table);
        });
    }

    /// Two threads submit packets with the same signal at the same time, and both change it.
    #[test]
    fn a_signal_of_two_packets_is_not_watched() {
        check(|| {
            let shared = shared();
            let launch = |table: &Table, model: &Model| {
                let watch = table.watch(model, SIGNAL, Kind::Dispatch);
                if watch.is_some() {
                    loom::thread::yield_now();
                }
                watch
            };
            let other = spawn(&shared, launch);
            let (table, model) = (&shared.table, &shared.model);
            let watches = [launch(table, model), other.join().unwrap()];
            for watch in watches.into_iter().flatten() {
                let result = table.poll(model, watch);
                assert_eq!(
                    result,
                    Some(Completed {
                        time: None,
                        raw: DispatchTime::default()
                    })
                );
            }
            assert_unused(table);
        });
    }
}
