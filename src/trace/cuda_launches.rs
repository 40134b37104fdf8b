//! The calls that submit work to CUDA's devices. CUPTI's record of a kernel or copy has only the number of its call: when
//! and where it was submitted is known from here.
//!
//! A thread that calls pushes an entry before CUDA submits the work, so the entry is found when the record arrives. In the
//! steady state this takes no lock, allocates nothing and makes no system call.

use super::thread_queues::ThreadQueues;
use std::collections::HashMap;

/// The number of entries in a generation of [`Launches`].
const GENERATION: usize = 1 << 18;

/// A call that submits work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// CUPTI's number of the call.
    pub correlation: u32,
    /// The thread that called (`gettid`).
    pub thread: u32,
    /// The id of the call's record, which is its correlation id. 0: the work is not recorded.
    pub id: u64,
    /// When it was called, system clock.
    pub submit: u64,
    /// Id of the stream, 0 for none.
    pub stream: u32,
    /// The call submits at most one kernel.
    pub is_single: bool,
    pub function: &'static str,
}

static QUEUES: ThreadQueues<Launch> = ThreadQueues::new();

/// Adds an entry of the calling thread.
pub fn push(launch: Launch) {
    QUEUES.push(launch);
}

/// The calls whose records may still arrive, by CUPTI's number, which it uses again after 2^32 calls.
///
/// Calls of a graph have any number of records, and those in a stream capture have none. So the oldest entries are
/// forgotten when there are too many: those of the generation before the current one.
#[derive(Default)]
pub struct Launches {
    new: HashMap<u32, Launch>,
    old: HashMap<u32, Launch>,
}

impl Launches {
    /// Adds the entries of all threads. Returns how many were dropped because a thread's queue was full.
    pub fn collect(&mut self) -> u64 {
        QUEUES.collect(|(), launch| launch.into_iter().for_each(|launch| self.add(launch)));
        QUEUES.take_dropped()
    }

    fn add(&mut self, launch: Launch) {
        if self.new.len() >= GENERATION {
            self.old = std::mem::take(&mut self.new);
        }
        self.new.insert(launch.correlation, launch);
    }

    /// The call with this number. The entry of a call that submits a single kernel is removed.
    pub fn find(&mut self, correlation: u32) -> Option<Launch> {
        let launches = match self.new.contains_key(&correlation) {
            true => &mut self.new,
            false => &mut self.old,
        };
        let launch = *launches.get(&correlation)?;
        if launch.is_single {
            launches.remove(&correlation);
        }
        Some(launch)
    }

    /// Whether records of calls before `time` may be missing.
    pub fn has_before(&self, time: u64) -> bool {
        let mut all = self.new.values().chain(self.old.values());
        all.any(|launch| launch.is_single && launch.id != 0 && launch.submit < time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(correlation: u32, is_single: bool) -> Launch {
        Launch {
            correlation,
            thread: 7,
            id: 1000 + u64::from(correlation),
            submit: correlation.into(),
            stream: 1,
            is_single,
            function: "cudaLaunchKernel",
        }
    }

    #[test]
    fn entries_of_single_kernels_are_used_once_and_those_of_graphs_stay() {
        let mut launches = Launches::default();
        let id = |launches: &mut Launches, n| launches.find(n).map(|found| found.id);
        launches.add(launch(1, true));
        launches.add(launch(2, false));
        assert!(launches.has_before(2));
        assert!(!launches.has_before(1));
        assert_eq!(id(&mut launches, 1), Some(1001));
        assert_eq!(id(&mut launches, 1), None);
        assert!(!launches.has_before(2));
        for _ in 0..3 {
            assert_eq!(id(&mut launches, 2), Some(1002));
        }
    }

    #[test]
    fn the_oldest_entries_are_forgotten() {
        let mut launches = Launches::default();
        let generation = GENERATION as u32;
        for n in 0..2 * generation + 1 {
            launches.add(launch(n, true));
        }
        assert_eq!(launches.find(0), None);
        assert_eq!(launches.find(generation - 1), None);
        for n in [generation, 2 * generation - 1, 2 * generation] {
            assert!(launches.find(n).is_some(), "{n}");
        }
    }
}
