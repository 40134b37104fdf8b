//! The times of asynchronous copies. As in ROCr, a signal has fields of its own for the times of the copy engines, next to
//! its `amd_signal_t`, and remembers which agent's clock its times are of.

use crate::sync::locked;
use hsa_abi::SignalHandle;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// The copy that was requested last with a signal while profiling was enabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyTimes {
    /// The times are ticks of the GPUs' clock, otherwise of the system's.
    pub by_gpu: bool,
    /// Start and end of a copy by a copy engine. `None`: they are in the `amd_signal_t`.
    pub engine: Option<(u64, u64)>,
}

static TIMES: Mutex<BTreeMap<u64, CopyTimes>> = Mutex::new(BTreeMap::new());

/// A copy was requested with this signal.
pub fn requested(signal: SignalHandle, by_gpu: bool) {
    let engine = None;
    locked(&TIMES).insert(signal.0, CopyTimes { by_gpu, engine });
}

/// A copy engine has executed the copy.
pub fn executed(signal: SignalHandle, start: u64, end: u64) {
    if let Some(times) = locked(&TIMES).get_mut(&signal.0) {
        times.engine = Some((start, end));
    }
}

/// The last copy with this signal.
pub fn get(signal: SignalHandle) -> Option<CopyTimes> {
    locked(&TIMES).get(&signal.0).copied()
}

/// A signal was destroyed.
pub fn forget(signal: SignalHandle) {
    locked(&TIMES).remove(&signal.0);
}

/// At shutdown: forgets all signals.
pub fn clear() {
    locked(&TIMES).clear();
}
