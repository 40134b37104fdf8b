//! The times that the hook of `hsa_amd_profiling_get_dispatch_time` returns for the program's signals. The kernel completed
//! devprof's signal instead.

use super::in_flight::Entry;
use crate::support::sync::lock;
use hsa_abi::{DispatchTime, SignalHandle};
use std::collections::HashMap;
use std::sync::Mutex;

/// Signals that the program has destroyed, and when. Empty until [`super::capture::has_replaced_signals`] is true.
static DESTROYED: Mutex<Vec<(SignalHandle, u64)>> = Mutex::new(Vec::new());

/// The program is about to destroy a signal.
pub fn add_destroyed(signal: SignalHandle, time: u64) {
    lock(&DESTROYED).push((signal, time));
}

#[derive(Clone, Copy)]
struct SignalTime {
    submit: u64,
    /// `None`: the program has since reused the signal for a packet that completes it itself.
    time: Option<DispatchTime>,
}

#[derive(Default)]
pub struct SignalTimes {
    times: HashMap<SignalHandle, SignalTime>,
    /// Signals that the program had destroyed when the poll began. Empty between two polls; kept to reuse its memory.
    destroyed: Vec<(SignalHandle, u64)>,
}

impl SignalTimes {
    /// A poll begins. The kernels of the signals that are destroyed now are complete.
    pub fn begin_poll(&mut self) {
        self.destroyed.append(&mut lock(&DESTROYED));
    }

    /// The entries of those kernels were processed.
    pub fn end_poll(&mut self) {
        for (signal, time) in self.destroyed.drain(..) {
            let known = self.times.get(&signal);
            if known.is_some_and(|known| known.submit < time) {
                self.times.remove(&signal);
            }
        }
    }

    /// Updates the times for the program's signal to the times of the packet that was submitted last.
    pub fn update(&mut self, entry: &Entry, time: Option<DispatchTime>) {
        let new = SignalTime {
            submit: entry.submit,
            // A packet without devprof's signal completes the program's signal itself.
            time: time.filter(|_| entry.dispatch && entry.signal.0 != 0),
        };
        let known = self.times.entry(entry.program_signal).or_insert(new);
        if known.submit <= new.submit {
            *known = new;
        }
    }

    /// The times, in ticks of the system clock, of the kernel in whose packet devprof replaced the program's completion
    /// signal `signal`.
    pub fn get(&self, signal: SignalHandle) -> Option<DispatchTime> {
        self.times.get(&signal)?.time
    }

    pub fn clear(&mut self) {
        self.times.clear();
    }
}
