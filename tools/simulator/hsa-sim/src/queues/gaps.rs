//! The steps of GPUs between kernels. How long a GPU needs for that is not simulated, so it is counted: a tool that adds nothing
//! to these numbers adds no gaps between kernels.

use crate::sync::locked;
use gpu_model::queue::packet;
use std::ops::AddAssign;
use std::sync::Mutex;

/// The steps of a queue's packet processor.
#[derive(Clone, Copy)]
pub struct Steps {
    /// Packets that are not kernels.
    pub packets: u64,
    /// Waits until the packets in front have ended (the barrier bit; packets that are not kernels always wait).
    pub waits: u64,
    /// Invalidations of caches (acquire fences at system scope).
    pub acquires: u64,
    /// Caches that are written back (release fences at system scope).
    pub releases: u64,
    /// Completion signals that are changed.
    pub signals: u64,
}

impl Steps {
    const NONE: Steps = Steps {
        packets: 0,
        waits: 0,
        acquires: 0,
        releases: 0,
        signals: 0,
    };
}

impl AddAssign for Steps {
    fn add_assign(&mut self, other: Steps) {
        self.packets += other.packets;
        self.waits += other.waits;
        self.acquires += other.acquires;
        self.releases += other.releases;
        self.signals += other.signals;
    }
}

/// All queues: the number of gaps between two kernels of a queue, and the steps in them.
static GAPS: Mutex<(u64, Steps)> = Mutex::new((0, Steps::NONE));

/// The number of gaps between two kernels of a queue, and the steps in them, of all queues since the process began.
pub fn all() -> (u64, Steps) {
    *locked(&GAPS)
}

/// A queue's packet processor.
#[derive(Default)]
pub struct Gaps {
    /// The steps since the last kernel. `None`: there was no kernel.
    since_kernel: Mutex<Option<Steps>>,
}

impl Gaps {
    /// A packet is complete.
    pub fn packet(&self, header: u16, has_signal: bool) {
        let kernel = header as u8 == packet::KERNEL_DISPATCH;
        let before = Steps {
            packets: u64::from(!kernel),
            waits: u64::from(!kernel || packet::has_barrier_bit(header)),
            acquires: u64::from(packet::acquires(header)),
            ..Steps::NONE
        };
        let after = Steps {
            releases: u64::from(packet::releases(header)),
            signals: u64::from(has_signal),
            ..Steps::NONE
        };
        let mut since = locked(&self.since_kernel);
        if let Some(steps) = &mut *since {
            *steps += before;
        }
        if kernel && let Some(steps) = since.replace(Steps::NONE) {
            let mut gaps = locked(&GAPS);
            gaps.0 += 1;
            gaps.1 += steps;
        }
        if let Some(steps) = &mut *since {
            *steps += after;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_between_two_kernels_are_counted() {
        const BARRIER: u16 = 1 << 8;
        const ACQUIRE: u16 = 2 << 9;
        const RELEASE: u16 = 2 << 11;
        let kernel = u16::from(packet::KERNEL_DISPATCH);
        let (count, before) = all();
        let queue = Gaps::default();
        queue.packet(u16::from(packet::BARRIER_AND), true);
        queue.packet(kernel | BARRIER | ACQUIRE, true);
        queue.packet(u16::from(packet::BARRIER_AND) | RELEASE, false);
        queue.packet(kernel | ACQUIRE | RELEASE, false);
        queue.packet(kernel | BARRIER, true);
        queue.packet(u16::from(packet::BARRIER_AND), true);
        let (now, steps) = all();
        assert_eq!(now - count, 2);
        assert_eq!(steps.packets - before.packets, 1);
        assert_eq!(steps.waits - before.waits, 2);
        assert_eq!(steps.acquires - before.acquires, 1);
        assert_eq!(steps.releases - before.releases, 2);
        assert_eq!(steps.signals - before.signals, 1);
    }
}
