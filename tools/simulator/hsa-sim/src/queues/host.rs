//! What the model calls while it processes the packets of a queue.

use super::block::Block;
use super::gaps::Gaps;
use crate::device::clock::GPU_FREQUENCY;
use crate::device::l2::L2;
use crate::faults::injection;
use crate::faults::plan::{DispatchFault, WrongTimes};
use crate::signals::{changes, completion};
use crate::system_events;
use gpu_model::dispatch;
use gpu_model::exec::{Fault, clock_ticks};
use gpu_model::queue::{Completion, Error, Host, hint};
use hsa_abi::*;
use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::Ordering::Acquire;

/// The environment of a queue in the model.
pub struct QueueHost {
    pub queue: usize,
    pub executes: bool,
    pub newest_packets: bool,
    pub agent: AgentHandle,
    pub l2: Option<Arc<L2>>,
    pub gaps: Gaps,
    pub callback: Option<(QueueErrorCallback, usize)>,
}

impl Host for QueueHost {
    fn set_event(&self, _: u32) {
        changes::notify();
    }

    fn executes(&self) -> bool {
        self.executes
    }

    fn has_newest_packets(&self) -> bool {
        self.newest_packets
    }

    fn acquire(&self) {
        if let Some(l2) = &self.l2 {
            l2.invalidate();
        }
    }

    fn release(&self) {
        if let Some(l2) = &self.l2 {
            l2.write_back();
        }
    }

    fn ended(&self, header: u16, has_signal: bool) {
        self.gaps.packet(header, has_signal);
    }

    fn completes(&self, mut ended: Completion, kernel: bool) -> Option<Completion> {
        if !kernel {
            return Some(ended);
        }
        let (mut lost, mut error, mut late) = (false, false, None);
        for fault in injection::dispatch_faults() {
            match fault {
                DispatchFault::Block(time) => {
                    std::thread::sleep(time);
                    ended.times = ended.times.map(|(start, _)| (start, clock_ticks()));
                }
                DispatchFault::Times(wrong) => {
                    ended.times = ended.times.map(|times| wrong_times(wrong, times));
                }
                DispatchFault::Drop => lost = true,
                DispatchFault::Error => error = true,
                DispatchFault::Late(time) => late = Some(time),
            }
        }
        let has_times = match ended.hints & hint::TIMES_MASK {
            0 => self.block().profiling.load(Acquire),
            hint::TIMES_OFF => false,
            _ => true,
        };
        if !has_times {
            ended.times = None;
        }
        if ended.signal == 0 || lost {
            return None;
        }
        if error {
            completion::fail(SignalHandle(ended.signal), ended.times);
            return None;
        }
        match late {
            Some(time) => {
                completion::complete_later(SignalHandle(ended.signal), ended.times, time);
                None
            }
            None => Some(ended),
        }
    }

    fn failed(&self, error: &Error) {
        eprintln!("hsa-sim: {error}");
        let (status, address) = match error {
            Error::Dispatch(dispatch::Error::Fault(report)) => match report.fault {
                Fault::Memory { address, .. } => (Status::MEMORY_FAULT, Some(address)),
                Fault::Scratch { .. } | Fault::Lds { .. } | Fault::Alignment { .. } => {
                    (Status::MEMORY_APERTURE_VIOLATION, None)
                }
                Fault::Trap(_) => (Status::EXCEPTION, None),
                _ => (Status::ILLEGAL_INSTRUCTION, None),
            },
            _ => (Status::INVALID_PACKET_FORMAT, None),
        };
        if address.is_some_and(|address| system_events::memory_fault(self.agent, address)) {
            return;
        }
        match self.callback {
            // SAFETY: the program has registered the function for this queue.
            Some((callback, data)) => unsafe {
                let owner = self.block().owner.load(Acquire);
                let queue = if owner.is_null() {
                    self.queue as *mut Queue
                } else {
                    owner.cast()
                };
                callback(status, queue, data as *mut c_void);
            },
            // Without a callback, the program is not notified of the error and would wait forever.
            None => std::process::abort(),
        }
    }
}

impl QueueHost {
    fn block(&self) -> &Block {
        // SAFETY: the queue's block lives as long as the thread that processes its packets.
        unsafe { &*(self.queue as *const Block) }
    }
}

/// The times of a kernel after a fault.
fn wrong_times(how: WrongTimes, (start, end): (u64, u64)) -> (u64, u64) {
    match how {
        WrongTimes::Swapped => (end.max(start + 1), start),
        WrongTimes::Before => (start - GPU_FREQUENCY, end - GPU_FREQUENCY),
        WrongTimes::After => (start + GPU_FREQUENCY * 3600, end + GPU_FREQUENCY * 3600),
        WrongTimes::Zero => (0, 0),
    }
}
