//! The launch path: processes the packets that a program writes to a queue, on the thread that rings the doorbell.
//! While the queue's pool has signals, nothing here locks, allocates, creates signals or makes a system call. If the
//! pool is empty, the thread waits until the completion thread has created signals. Creating signals does not depend on
//! the completion of GPU work.
//!
//! This wait cannot deadlock, whatever locks the launching thread holds: ROCr's lock of this queue, perhaps the lock of
//! the doorbell ([`crate::amd::doorbell`]), and the program's own. The completion thread takes the session's
//! lock, and under it the locks of the scheduled queues, the destroyed signals, the API calls, the copies, the markers
//! and the new streams, whose other holders never wait, and those that ROCr takes to create signals. While other
//! threads hold the session's lock, they do not ring doorbells, take locks of queues or doorbells, or wait for
//! signals: they create or destroy queues, freeze executables or shut HSA down only before they take the lock or after
//! they have released it. A separate thread submits the packets withheld at doorbells. That thread and the completion
//! thread block POSIX signals. If HSA is shut down or the process ends during the wait, the wait ends without a signal
//! ([`Shared::stopped`]).

use super::in_flight::{Entry, LaunchSide};
use super::kernel_addresses;
use super::packet_origins::{PacketOrigin, QueueOrigins};
use crate::gpu::observers::Packet;
use crate::support::sync::lock;
use crate::sys::threads::Uncancelled;
use crate::trace::hsa::watched_signals::{self, Kind};
use crate::trace::queues::poll_flag::PollFlag;
use crate::trace::queues::wakeup;
use crate::trace::session::{self, recording};
use hsa_abi::SignalHandle;
use hsa_abi::newer::signal_hint;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// `HSA_PACKET_TYPE_*`, the lowest byte of a packet.
mod kind {
    pub const VENDOR_SPECIFIC: u8 = 0;
    pub const INVALID: u8 = 1;
    pub const KERNEL_DISPATCH: u8 = 2;
    pub const BARRIER_AND: u8 = 3;
    pub const AGENT_DISPATCH: u8 = 4;
    pub const BARRIER_OR: u8 = 5;
}

/// The third byte of a vendor-specific packet on a GPU's queue (`hsa_amd_packet_type_t`).
mod format {
    /// PM4 commands, written by ROCr itself.
    pub const PM4: u8 = 1;
    pub const BARRIER_VALUE: u8 = 2;
    /// `hsa_amd_ext_kernel_dispatch_packet_t`, a dispatch in clusters of workgroups (gfx1250).
    pub const KERNEL_DISPATCH: u8 = 3;
    /// `hsa_amd_aql_ib_cond_jump_packet_t` and `hsa_amd_aql_ib_jump_packet_t`: the packet processor executes packets that
    /// are in other memory, such as a graph of HIP.
    pub const COND_JUMP: u8 = 6;
    pub const JUMP: u8 = 7;
    /// Another tool's marker for ROCr's intercept queue.
    pub const INTERCEPT_MARKER: u8 = 0xfe;
}

/// State that the launching thread and the completion thread share, in addition to the channel.
#[derive(Default)]
pub struct Shared {
    /// Whether the completion thread polls the queue.
    pub poll_flag: PollFlag,
    /// The launching thread waits for a signal.
    pub waiting_for_signal: AtomicBool,
    /// HSA creates no more signals: dispatches get none and have no times.
    pub signals_exhausted: AtomicBool,
    /// HSA's functions must not be called any more.
    pub stopped: AtomicBool,
    /// Packets of an unknown type, and jumps to packets that devprof does not see.
    pub unknown_packets: AtomicU64,
    /// Of these, the jumps.
    pub jumps: AtomicU64,
    /// The number of times that the launching thread found the pool empty.
    pub signal_waits: AtomicU64,
}

/// In a packet of any queue, the program's completion signal was replaced with devprof's. A relaxed access is enough:
/// the program waits for its signal before it reuses the signal, so a thread that reuses it sees this.
static REPLACED_SIGNALS: AtomicBool = AtomicBool::new(false);

/// Whether signals of the program may be completed by a forwarding barrier packet.
pub fn has_replaced_signals() -> bool {
    REPLACED_SIGNALS.load(Ordering::Relaxed)
}

/// Ids of queues that have entries in flight and are not polled yet.
static SCHEDULED: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// A queue that is not polled has entries in flight.
#[cold]
fn schedule(queue: u32) {
    if session::is_traced() {
        lock(&SCHEDULED).push(queue);
        wakeup::wake_if_asleep();
    }
}

/// Moves the ids of the queues to poll. Keeps the capacity of the list.
pub fn take_scheduled(to: &mut Vec<u32>) {
    to.append(&mut lock(&SCHEDULED));
}

pub fn has_scheduled() -> bool {
    !lock(&SCHEDULED).is_empty()
}

/// The launching side of a queue. ROCr calls a queue's handler on one thread at a time.
pub struct Capture {
    launch_side: LaunchSide,
    shared: Arc<Shared>,
    /// The queue's id.
    queue: u32,
    origins: &'static QueueOrigins,
    /// The packets for the hardware queue.
    output: Vec<Packet>,
}

/// How often a thread without a signal yields before it sleeps.
const YIELDS_BEFORE_SLEEP: u32 = 20;
/// How long it sleeps each time.
const SIGNAL_WAIT_PAUSE: Duration = Duration::from_micros(50);
/// How long it waits if the completion thread does not run yet: that may wait for the dynamic loader's lock, which this
/// thread holds if it is in `dlopen`. The dispatch then has no times.
const START_LIMIT: Duration = Duration::from_millis(200);
/// The largest batch for which the output buffer need not grow.
const BATCH: usize = 512;

impl Capture {
    pub fn new(
        launch_side: LaunchSide,
        shared: Arc<Shared>,
        queue: u32,
        origins: &'static QueueOrigins,
    ) -> Capture {
        Capture {
            launch_side,
            shared,
            queue,
            origins,
            output: Vec::with_capacity(2 * BATCH),
        }
    }

    /// Whether packets may pass without [`Capture::process`], except for those whose slots were reserved while the
    /// recording was on.
    pub fn is_idle() -> bool {
        // A packet may reuse a signal that is watched, or for which the times of an earlier kernel are stored.
        !recording::is_on() && !has_replaced_signals() && !watched_signals::were_used()
    }

    /// Processes a batch of packets with their indices in the program's queue. Returns the packets to write instead.
    ///
    /// A dispatch is recorded if its slot was reserved while the recording was on, or if the recording is on now and
    /// the reservation was not recorded.
    pub fn process(&mut self, batch: &mut dyn Iterator<Item = (u64, Packet)>) -> &[Packet] {
        self.output.clear();
        let is_on = recording::is_on();
        let mut has_entries = false;
        let mut origin_now = None;
        for (index, mut packet) in batch {
            let Some(mut entry) = self.entry(&packet) else {
                self.output.push(packet);
                continue;
            };
            let reserved = self.origins.get(index);
            if entry.dispatch && !is_on && reserved.is_none() {
                if entry.program_signal.0 != 0 {
                    watched_signals::changing(entry.program_signal);
                }
                if !has_replaced_signals() || entry.program_signal.0 == 0 {
                    self.output.push(packet);
                    continue;
                }
                // As for a packet that is not a dispatch.
                entry = Entry {
                    program_signal: entry.program_signal,
                    ..Entry::default()
                };
            }
            has_entries = true;
            let origin =
                reserved.unwrap_or_else(|| *origin_now.get_or_insert_with(PacketOrigin::now));
            entry.submit = origin.time;
            if entry.dispatch {
                entry.correlation = origin.correlation;
                entry.stream = origin.stream;
                entry.thread = origin.thread;
                entry.epoch = kernel_addresses::epoch();
                self.set_signal(&mut entry, packet[7]);
            }
            let program_handle = packet[7];
            if entry.signal.0 != 0 {
                packet[7] = entry.signal.0;
            } else if entry.dispatch {
                packet[7] = signal_hint::with_times(program_handle);
            }
            self.launch_side.in_flight.push(entry);
            self.output.push(packet);
            if entry.signal.0 != 0 && entry.program_signal.0 != 0 {
                let header = packet[0] as u16;
                self.output
                    .push(forwarding_barrier(header, entry.signal, program_handle));
            }
        }
        if has_entries {
            self.schedule_poll();
        }
        &self.output
    }

    /// The completion thread's entry for a packet. `None` if the completion thread does not need one.
    fn entry(&self, packet: &Packet) -> Option<Entry> {
        let format = (packet[0] >> 16) as u8;
        let is_jump = packet[0] as u8 == kind::VENDOR_SPECIFIC
            && matches!(format, format::JUMP | format::COND_JUMP);
        let program_signal = signal_hint::without(packet[if is_jump { 6 } else { 7 }]);
        let vendor = match packet[0] as u8 {
            kind::KERNEL_DISPATCH => false,
            kind::VENDOR_SPECIFIC if format == format::KERNEL_DISPATCH => true,
            other => {
                let known = match other {
                    kind::VENDOR_SPECIFIC => {
                        let formats =
                            [format::PM4, format::BARRIER_VALUE, format::INTERCEPT_MARKER];
                        is_jump || formats.contains(&format)
                    }
                    kind::INVALID | kind::BARRIER_AND | kind::AGENT_DISPATCH | kind::BARRIER_OR => {
                        true
                    }
                    _ => false,
                };
                if is_jump && recording::is_on() {
                    self.shared.jumps.fetch_add(1, Ordering::Relaxed);
                }
                if !known || is_jump && recording::is_on() {
                    self.shared.unknown_packets.fetch_add(1, Ordering::Relaxed);
                }
                if known && program_signal.0 != 0 {
                    watched_signals::changing(program_signal);
                }
                // The packet may reuse a signal for which the times of an earlier kernel are stored.
                return (has_replaced_signals() && known && program_signal.0 != 0).then(|| Entry {
                    program_signal,
                    ..Entry::default()
                });
            }
        };
        let workgroup = [
            (packet[0] >> 32) as u16,
            (packet[0] >> 48) as u16,
            packet[1] as u16,
        ];
        let grid = if vendor {
            // The number of clusters, and the workgroups per cluster.
            let clusters = [
                (packet[1] >> 32) as u32,
                u32::from(packet[2] as u16),
                u32::from((packet[2] >> 16) as u16),
            ];
            let sizes = (packet[2] >> 32) as u32;
            std::array::from_fn(|axis| {
                clusters[axis]
                    .saturating_mul(sizes >> (8 * axis) & 0xff)
                    .saturating_mul(workgroup[axis].into())
            })
        } else {
            [
                (packet[1] >> 32) as u32,
                packet[2] as u32,
                (packet[2] >> 32) as u32,
            ]
        };
        Some(Entry {
            program_signal,
            dispatch: true,
            vendor,
            kernel_object: packet[4],
            grid,
            workgroup,
            scratch: packet[3] as u32,
            lds: (packet[3] >> 32) as u32,
            ..Entry::default()
        })
    }

    /// Chooses the signal of a dispatch: the program's if it has one that can be watched, or one from the pool. `handle`: the
    /// program's signal in the packet.
    fn set_signal(&mut self, entry: &mut Entry, handle: u64) {
        let is_stopped = self.shared.stopped.load(Ordering::Relaxed);
        if entry.program_signal.0 != 0 && !is_stopped {
            if signal_hint::changes_value(handle) {
                entry.watch = watched_signals::watch(entry.program_signal, Kind::Dispatch);
            } else {
                watched_signals::changing(entry.program_signal);
            }
            if entry.watch.is_some() {
                if !has_replaced_signals() {
                    entry.program_signal = SignalHandle(0);
                }
                return;
            }
            REPLACED_SIGNALS.store(true, Ordering::Relaxed);
        }
        entry.signal = self.take_signal();
    }

    /// Takes a signal from the pool; 0 if the pool is empty and cannot be refilled now.
    fn take_signal(&mut self) -> SignalHandle {
        if self.shared.stopped.load(Ordering::Relaxed) {
            return SignalHandle(0);
        }
        if let Some(signal) = self.launch_side.free_signals.pop() {
            return signal;
        }
        self.wait_for_signal()
    }

    #[cold]
    fn wait_for_signal(&mut self) -> SignalHandle {
        self.shared.signal_waits.fetch_add(1, Ordering::Relaxed);
        self.shared.waiting_for_signal.store(true, Ordering::SeqCst);
        self.schedule_poll();
        let mut yields = 0;
        let begin = Instant::now();
        let signal = loop {
            if let Some(signal) = self.launch_side.free_signals.pop() {
                break signal;
            }
            let no_more = self.shared.signals_exhausted.load(Ordering::Acquire)
                || self.shared.stopped.load(Ordering::Acquire)
                || !wakeup::is_running() && begin.elapsed() >= START_LIMIT;
            if no_more {
                break SignalHandle(0);
            }
            wakeup::wake();
            // With a real-time priority, yielding does not let threads of lower priority run.
            if yields < YIELDS_BEFORE_SLEEP {
                yields += 1;
                std::thread::yield_now();
            } else {
                let _uncancelled = Uncancelled::begin();
                std::thread::sleep(SIGNAL_WAIT_PAUSE);
            }
        };
        self.shared
            .waiting_for_signal
            .store(false, Ordering::Relaxed);
        signal
    }

    /// Ensures that the completion thread polls the queue.
    fn schedule_poll(&self) {
        if self.shared.poll_flag.try_schedule() {
            schedule(self.queue);
        }
    }

    pub fn into_launch_side(self) -> LaunchSide {
        self.launch_side
    }
}

/// The barrier packet that waits for devprof's signal of a kernel, and completes the program's signal, which cannot be
/// watched, with the same hints. It does not wait for other packets. It acquires and releases with the kernel's release scope, as if the
/// kernel itself had completed the program's signal.
fn forwarding_barrier(kernel_header: u16, signal: SignalHandle, program_handle: u64) -> Packet {
    const ACQUIRE: u16 = 9;
    const RELEASE: u16 = 11;
    let scope = kernel_header >> RELEASE & 3;
    let header = u16::from(kind::BARRIER_AND) | scope << ACQUIRE | scope << RELEASE;
    let mut packet = [0; 8];
    packet[0] = header.into();
    packet[1] = signal.0;
    packet[7] = program_handle;
    packet
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::super::{in_flight, packet_origins};
    use super::*;

    #[test]
    fn a_thread_that_may_hold_the_loaders_lock_does_not_wait_for_a_signal_forever() {
        let (launch_side, _completion_side) = in_flight::channel();
        // Not the address in the test of `packet_origins`, which has the same table.
        let queue = 0x9000;
        let origins = packet_origins::add(queue, 64);
        let shared = Arc::new(Shared::default());
        let mut capture = Capture::new(launch_side, shared.clone(), 1, origins);
        let mut packet: Packet = [0; 8];
        packet[0] = kind::KERNEL_DISPATCH.into();
        let begin = Instant::now();
        // The completion thread was not started.
        let output = capture.process(&mut [(0, packet)].into_iter()).to_vec();
        assert_eq!(output, [packet]);
        assert!(begin.elapsed() >= START_LIMIT);
        assert_eq!(shared.signal_waits.load(Ordering::Relaxed), 1);
        packet_origins::remove(queue);
    }
}
