//! Several copies of devprof in one process: the archive in the program and in some of its libraries, the shared
//! library beside them. The first one works; the others hand over to it. FFI between the copies, which find one another
//! by a note in the file that holds each, so that it does not matter which symbols are visible.

use crate::host;
use std::ffi::c_int;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// What a copy shows to the others. Fixed for all versions of devprof: `version`. For all of one: the rest.
#[repr(C)]
pub struct Instance {
    version: u32,
    /// Not 0: it works for all.
    leads: AtomicU32,
    /// See [`Order`].
    order: extern "C" fn(u32, u64, u64, u32) -> u64,
}

/// Of [`Instance`] and [`Order`].
const VERSION: u32 = 1;

/// What one copy asks of the one that leads. An executable is its handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Drain all, after the kernels that still run; `wait`: for those of HIP, too. 0, or 1 when something was lost.
    Collect { wait: bool },
    /// Set all counters back. As above.
    Reset,
    /// An executable was frozen, and its end will be told.
    Frozen(u64),
    /// An executable is about to be destroyed. What [`Order::Gone`] wants to be told.
    Going(u64),
    Gone {
        executable: u64,
        freezing: u64,
        destroyed: bool,
    },
    /// HSA is about to be shut down.
    ShutDown,
    /// HSA is up; [`Order::ShutDown`] and [`Order::Unloaded`] will come in time, and queues will be told.
    Listens,
    /// The shutdown is over.
    IsDown,
    /// A queue was made: its address, and whether it has a single producer.
    QueueMade { queue: u64, single: bool },
    /// A queue is about to be destroyed or made inactive.
    QueueGone(u64),
    /// HSA is about to be initialised.
    Starts,
    /// That is over.
    Started,
    /// HSA is down.
    Unloaded,
    /// When the process exits there is to be a last drain before what is registered already.
    AtExit,
    /// A library is being closed. As [`Order::Collect`], without waiting.
    Closing,
}

impl Order {
    fn pack(self) -> (u32, u64, u64, u32) {
        match self {
            Order::Collect { wait } => (0, 0, 0, wait.into()),
            Order::Reset => (1, 0, 0, 0),
            Order::Frozen(executable) => (2, executable, 0, 0),
            Order::Going(executable) => (3, executable, 0, 0),
            Order::Gone {
                executable,
                freezing,
                destroyed,
            } => (4, executable, freezing, destroyed.into()),
            Order::ShutDown => (5, 0, 0, 0),
            Order::Listens => (6, 0, 0, 0),
            Order::IsDown => (7, 0, 0, 0),
            Order::QueueMade { queue, single } => (8, queue, 0, single.into()),
            Order::QueueGone(queue) => (9, queue, 0, 0),
            Order::Starts => (10, 0, 0, 0),
            Order::Started => (11, 0, 0, 0),
            Order::Unloaded => (12, 0, 0, 0),
            Order::AtExit => (13, 0, 0, 0),
            Order::Closing => (14, 0, 0, 0),
        }
    }

    fn unpack(kind: u32, executable: u64, freezing: u64, flag: u32) -> Option<Order> {
        Some(match kind {
            0 => Order::Collect { wait: flag != 0 },
            1 => Order::Reset,
            2 => Order::Frozen(executable),
            3 => Order::Going(executable),
            4 => Order::Gone {
                executable,
                freezing,
                destroyed: flag != 0,
            },
            5 => Order::ShutDown,
            6 => Order::Listens,
            7 => Order::IsDown,
            8 => Order::QueueMade {
                queue: executable,
                single: flag != 0,
            },
            9 => Order::QueueGone(executable),
            10 => Order::Starts,
            11 => Order::Started,
            12 => Order::Unloaded,
            13 => Order::AtExit,
            14 => Order::Closing,
            _ => return None,
        })
    }
}

static INSTANCE: Instance = Instance {
    version: VERSION,
    leads: AtomicU32::new(0),
    order: take,
};
/// Another copy, which leads.
static LEADER: AtomicPtr<Instance> = AtomicPtr::new(std::ptr::null_mut());

// A note of type 1 by the name of devprof, which holds the distance to the instance.
std::arch::global_asm!(
    ".pushsection .note.devprof,\"a\",@note",
    ".balign 4",
    ".long 8",
    ".long 8",
    ".long 1",
    ".asciz \"devprof\"",
    ".quad {instance} - .",
    ".popsection",
    instance = sym INSTANCE,
);

/// What became of the other copies.
pub enum Found {
    /// This copy leads.
    None,
    /// Another one does.
    Leader,
    /// One of another version does, to which nothing can be handed.
    Stranger,
}

/// Finds the copy that leads, or makes this one lead. Called once, by the constructor: the dynamic linker runs those
/// one after the other.
pub fn find_leader() -> Found {
    let mut found = Found::None;
    for other in host::notes(c"devprof", 1) {
        let other = other.cast::<Instance>();
        if std::ptr::eq(other, &INSTANCE) {
            continue;
        }
        // SAFETY: an instance of another copy: its note says so, and a file that is loaded holds it.
        let (version, leads) = unsafe {
            let version = (*other).version;
            (version, (*other).leads.load(Ordering::Acquire) != 0)
        };
        if version != VERSION {
            found = Found::Stranger;
        } else if leads {
            LEADER.store(other.cast_mut(), Ordering::Release);
            return Found::Leader;
        }
    }
    if matches!(found, Found::None) {
        INSTANCE.leads.store(1, Ordering::Release);
    }
    found
}

/// This copy works for the process.
pub fn leads() -> bool {
    INSTANCE.leads.load(Ordering::Relaxed) != 0
}

/// Has an order carried out by the copy that leads.
pub fn order(order: Order) -> u64 {
    let leader = LEADER.load(Ordering::Acquire);
    if leader.is_null() {
        return if leads() {
            crate::entry::carry_out(order)
        } else {
            0
        };
    }
    let (kind, executable, freezing, flag) = order.pack();
    // SAFETY: a copy that leads stays in the process (see the constructor), and is of this version.
    unsafe { ((*leader).order)(kind, executable, freezing, flag) }
}

extern "C" fn take(kind: u32, executable: u64, freezing: u64, flag: u32) -> u64 {
    match Order::unpack(kind, executable, freezing, flag) {
        Some(order) => crate::entry::carry_out(order),
        None => 0,
    }
}

/// What C functions return for an order that may lose something.
pub fn status(lost: u64) -> c_int {
    if lost == 0 { 0 } else { -1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_arrives_as_it_was_given() {
        for order in [
            Order::Collect { wait: true },
            Order::Collect { wait: false },
            Order::Reset,
            Order::Frozen(7),
            Order::Going(8),
            Order::Gone {
                executable: 9,
                freezing: 10,
                destroyed: true,
            },
            Order::ShutDown,
            Order::Listens,
            Order::IsDown,
            Order::QueueMade {
                queue: 4,
                single: true,
            },
            Order::QueueGone(4),
            Order::Starts,
            Order::Started,
            Order::Unloaded,
            Order::AtExit,
            Order::Closing,
        ] {
            let (kind, executable, freezing, flag) = order.pack();
            assert_eq!(Order::unpack(kind, executable, freezing, flag), Some(order));
        }
        assert_eq!(Order::unpack(15, 0, 0, 0), None);
    }

    #[test]
    fn a_copy_finds_its_own_note() {
        let notes = host::notes(c"devprof", 1);
        assert!(
            notes
                .iter()
                .any(|&note| std::ptr::eq(note.cast(), &INSTANCE))
        );
    }
}
