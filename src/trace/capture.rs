//! The launch path: what happens to the packets that a program writes to a queue, on the thread that rang the doorbell.
//! Nothing here locks, allocates, makes signals or calls the system while the queue's pool has signals; when the pool
//! has run dry, the thread waits for the completion thread to make some, which needs nothing of the GPU.
//!
//! Why that wait ends, whatever the launching thread holds: ROCr's lock of this queue, perhaps that of the doorbell
//! ([`crate::gpu::hsa::doorbell`]), and the program's own. The completion thread takes the completer's lock, then briefly those
//! of the activated queues, of the API calls and of what ROCr makes signals with. Whoever else takes the completer's lock
//! rings no doorbell, takes no lock of a queue or a doorbell and waits for no signal while it has it: queues are made and
//! destroyed, executables frozen, HSA shut down before it or after. What is kept back at a doorbell is handed on by a
//! thread of its own. Signals of the operating system are blocked on both threads. If HSA is shut down meanwhile, or the
//! process ends, the wait ends without a signal ([`Shared::stopped`]).

use super::in_flight::{Entry, Launching};
use super::kernel_index;
use super::packet_origins::{Writer, Writers};
use super::poll_flag::PollFlag;
use crate::gpu::events::Packet;
use hsa_abi::SignalHandle;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

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
    /// PM4 commands, ROCr's own.
    pub const PM4: u8 = 1;
    pub const BARRIER_VALUE: u8 = 2;
    /// `hsa_amd_ext_kernel_dispatch_packet_t`, a dispatch in clusters of workgroups (gfx1250).
    pub const KERNEL_DISPATCH: u8 = 3;
    /// A mark for ROCr's intercept queue, of another tool.
    pub const INTERCEPT_MARKER: u8 = 0xfe;
}

/// What the launching and the completion thread tell each other, beside the lane.
#[derive(Default)]
pub struct Shared {
    /// The completion thread looks at the queue.
    pub poll_flag: PollFlag,
    /// The launching thread waits for signals.
    pub dry: AtomicBool,
    /// There can be no more signals: dispatches go without, and have no times.
    pub starved: AtomicBool,
    /// HSA's functions are out of use, or will be soon.
    pub stopped: AtomicBool,
    /// Packets of a type that is not known here.
    pub unknown: AtomicU64,
    /// How often the launching thread found no signal.
    pub dry_times: AtomicU64,
}

/// Some packet, of whatever queue, was given another completion signal than the program's. The program waits for its
/// signal before it uses it again, so that whoever uses it sees this.
static FORWARDING: AtomicBool = AtomicBool::new(false);

/// Whether the program's signals may stand for kernels that have completed others.
pub fn is_forwarding() -> bool {
    FORWARDING.load(Ordering::Relaxed)
}

/// A queue's launching side. ROCr calls a queue's handler on one thread at a time.
pub struct Capture {
    lane: Launching,
    shared: Arc<Shared>,
    /// Number of the queue.
    queue: u32,
    writers: &'static Writers,
    /// What goes on to the queue.
    out: Vec<Packet>,
    /// Has the completion thread look at the queue.
    activate: fn(u32),
    /// Wakes the completion thread, whatever it does.
    wake: fn(),
}

/// A thread without a signal gives way so often before it sleeps.
const YIELDS: u32 = 20;
/// So long, again and again.
const DRY_PAUSE: Duration = Duration::from_micros(50);
/// Packets that a batch of may be taken without growing the buffer.
const BATCH: usize = 512;

impl Capture {
    pub fn new(
        lane: Launching,
        shared: Arc<Shared>,
        queue: u32,
        writers: &'static Writers,
        activate: fn(u32),
        wake: fn(),
    ) -> Capture {
        Capture {
            lane,
            shared,
            queue,
            writers,
            out: Vec::with_capacity(2 * BATCH),
            activate,
            wake,
        }
    }

    /// Takes a batch whose first packet has the index `first` in the program's queue. Returns the packets to write in its
    /// place.
    pub fn take(&mut self, first: u64, batch: &[Packet]) -> &[Packet] {
        self.out.clear();
        let mut told = false;
        let mut ringing = None;
        for (index, mut packet) in (first..).zip(batch.iter().copied()) {
            let Some(mut entry) = self.entry(&packet) else {
                self.out.push(packet);
                continue;
            };
            told = true;
            let writer = self
                .writers
                .of(index)
                .unwrap_or_else(|| *ringing.get_or_insert_with(Writer::now));
            entry.submit = writer.time;
            if entry.dispatch {
                entry.correlation = writer.correlation;
                entry.thread = writer.thread;
                entry.epoch = kernel_index::epoch();
                entry.signal = self.signal();
            }
            let ours = entry.signal.0 != 0;
            if ours {
                packet[7] = entry.signal.0;
            }
            self.lane.in_flight.push(entry);
            self.out.push(packet);
            if ours && entry.program_signal.0 != 0 {
                FORWARDING.store(true, Ordering::Relaxed);
                self.out.push(forward(packet[0] as u16, &entry));
            }
        }
        if told {
            self.tell();
        }
        &self.out
    }

    /// What the completion thread has to hear of a packet.
    fn entry(&self, packet: &Packet) -> Option<Entry> {
        let program_signal = SignalHandle(packet[7]);
        let format = (packet[0] >> 16) as u8;
        let vendor = match packet[0] as u8 {
            kind::KERNEL_DISPATCH => false,
            kind::VENDOR_SPECIFIC if format == format::KERNEL_DISPATCH => true,
            other => {
                let known = match other {
                    kind::VENDOR_SPECIFIC => matches!(
                        format,
                        format::PM4 | format::BARRIER_VALUE | format::INTERCEPT_MARKER
                    ),
                    kind::INVALID | kind::BARRIER_AND | kind::AGENT_DISPATCH | kind::BARRIER_OR => {
                        true
                    }
                    _ => false,
                };
                if !known {
                    self.shared.unknown.fetch_add(1, Ordering::Relaxed);
                }
                // A signal that stood for a kernel's may be this packet's now.
                return (is_forwarding() && known && program_signal.0 != 0).then(|| Entry {
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
            // Clusters, and workgroups in each.
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

    /// A signal of the pool; 0 when there can be none.
    fn signal(&mut self) -> SignalHandle {
        if self.shared.stopped.load(Ordering::Relaxed) {
            return SignalHandle(0);
        }
        if let Some(signal) = self.lane.free.pop() {
            return signal;
        }
        self.wait_for_signal()
    }

    #[cold]
    fn wait_for_signal(&mut self) -> SignalHandle {
        self.shared.dry_times.fetch_add(1, Ordering::Relaxed);
        self.shared.dry.store(true, Ordering::SeqCst);
        self.tell();
        let mut yields = 0;
        let signal = loop {
            if let Some(signal) = self.lane.free.pop() {
                break signal;
            }
            let none = self.shared.starved.load(Ordering::Acquire)
                || self.shared.stopped.load(Ordering::Acquire);
            if none {
                break SignalHandle(0);
            }
            (self.wake)();
            // A thread with a real-time priority has to sleep for others to run on its processor.
            if yields < YIELDS {
                yields += 1;
                std::thread::yield_now();
            } else {
                std::thread::sleep(DRY_PAUSE);
            }
        };
        self.shared.dry.store(false, Ordering::Relaxed);
        signal
    }

    /// Sees to it that the completion thread looks at the queue.
    fn tell(&self) {
        if self.shared.poll_flag.try_schedule() {
            (self.activate)(self.queue);
        }
    }

    pub fn into_lane(self) -> Launching {
        self.lane
    }
}

/// The barrier packet that waits for a kernel's signal, ours, and completes the program's. It does not wait for other
/// packets. What the kernel released is acquired and released again, as if the kernel itself had completed the signal.
fn forward(kernel_header: u16, entry: &Entry) -> Packet {
    const ACQUIRE: u16 = 9;
    const RELEASE: u16 = 11;
    let scope = kernel_header >> RELEASE & 3;
    let header = u16::from(kind::BARRIER_AND) | scope << ACQUIRE | scope << RELEASE;
    let mut packet = [0; 8];
    packet[0] = header.into();
    packet[1] = entry.signal.0;
    packet[7] = entry.program_signal.0;
    packet
}
