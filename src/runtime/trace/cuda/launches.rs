//! The calls that submit work to CUDA's devices. CUPTI's record of a kernel or copy has only the number of its call: when
//! and where it was submitted is known from here.
//!
//! A thread that calls pushes an entry before CUDA submits the work, so the entry is found when the record arrives. In the
//! steady state this takes no lock, allocates nothing and makes no system call.

use crate::trace::queues::thread_queues::ThreadQueues;
use std::collections::HashMap;

/// The number of entries in a generation of [`Launches`].
const GENERATION: usize = 1 << 18;

/// A call that submits work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// CUPTI's number of the call.
    pub correlation: u32,
    /// CUPTI's number of the program's call during which this one was made. For the program's own call, it is `correlation`.
    pub outer: u32,
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

/// An entry of a thread's queue.
#[derive(Clone, Copy)]
pub enum Entry {
    Launched(Launch),
    /// The call has failed, so it has submitted nothing. The second entry of the call.
    Failed {
        correlation: u32,
    },
}

pub static QUEUES: ThreadQueues<Entry> = ThreadQueues::new();

/// The calls whose records may still arrive, by CUPTI's number, which it uses again after 2^32 calls.
///
/// Calls of a graph have any number of records, and those in a stream capture have none. So the oldest entries are
/// forgotten when there are too many: the entries of the generation before the current one.
#[derive(Default)]
pub struct Launches {
    new: HashMap<u32, Launch>,
    old: HashMap<u32, Launch>,
}

impl Launches {
    /// Adds the entries of all threads. Returns how many were dropped because a thread's queue was full.
    pub fn collect(&mut self) -> u64 {
        QUEUES.collect(|(), entry| match entry {
            Some(Entry::Launched(launch)) => self.add(launch),
            Some(Entry::Failed { correlation }) => self.remove(correlation),
            None => {}
        })
    }

    fn add(&mut self, launch: Launch) {
        if self.new.len() >= GENERATION {
            self.old = std::mem::take(&mut self.new);
        }
        self.new.insert(launch.correlation, launch);
    }

    fn remove(&mut self, correlation: u32) {
        if self.new.remove(&correlation).is_none() {
            self.old.remove(&correlation);
        }
    }

    /// The call with this number. The entry of a call that submits a single kernel is removed, and so is the entry of the call
    /// around it: only one of them has the record.
    pub fn find(&mut self, correlation: u32) -> Option<Launch> {
        let launch = *self.get(correlation)?;
        if launch.is_single {
            self.remove(correlation);
            if self.get(launch.outer).is_some_and(|outer| outer.is_single) {
                self.remove(launch.outer);
            }
        }
        Some(launch)
    }

    fn get(&self, correlation: u32) -> Option<&Launch> {
        let known = self.new.get(&correlation);
        known.or_else(|| self.old.get(&correlation))
    }

    /// The program's calls of which each has submitted one kernel, and whose records have not arrived.
    fn awaited(&self) -> impl Iterator<Item = &Launch> {
        let all = self.new.values().chain(self.old.values());
        all.filter(|launch| {
            launch.is_single && launch.id != 0 && launch.outer == launch.correlation
        })
    }

    /// Whether records of calls before `time` may be missing.
    pub fn has_before(&self, time: u64) -> bool {
        self.awaited().any(|launch| launch.submit < time)
    }

    /// Forgets the calls before `time` whose records should have arrived, and returns their number. `thread` is the
    /// calling thread. The latest call of another thread may not be over.
    pub fn take_missing(&mut self, time: u64, thread: u32) -> u64 {
        let mut latest: HashMap<u32, u64> = HashMap::new();
        for launch in self.awaited().filter(|launch| launch.thread != thread) {
            let time = latest.entry(launch.thread).or_default();
            *time = launch.submit.max(*time);
        }
        let is_missing = |launch: &&Launch| {
            launch.submit < time && latest.get(&launch.thread) != Some(&launch.submit)
        };
        let missing = self.awaited().filter(is_missing);
        let missing: Vec<u32> = missing.map(|launch| launch.correlation).collect();
        missing
            .iter()
            .for_each(|&correlation| self.remove(correlation));
        missing.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(correlation: u32, is_single: bool) -> Launch {
        Launch {
            correlation,
            outer: correlation,
            thread: 7,
            id: 1000 + u64::from(correlation),
            submit: correlation.into(),
            stream: 1,
            is_single,
            function: "cudaLaunchKernel",
        }
    }

    #[test]
    fn a_launch_has_one_record_with_the_number_of_one_of_its_calls() {
        let inner = Launch {
            outer: 1,
            ..launch(2, true)
        };
        for number in [1, 2] {
            let mut launches = Launches::default();
            launches.add(launch(1, true));
            launches.add(inner);
            assert!(launches.find(number).is_some());
            assert_eq!(launches.take_missing(10, 7), 0);
        }
        let mut launches = Launches::default();
        launches.add(launch(1, true));
        launches.add(inner);
        assert_eq!(launches.take_missing(10, 7), 1);
        assert_eq!(launches.take_missing(10, 7), 0);
    }

    #[test]
    fn calls_that_have_failed_or_are_not_over_miss_no_record() {
        let mut launches = Launches::default();
        for number in 1..=4 {
            launches.add(launch(number, number != 4));
        }
        launches.remove(2);
        // Call 3 is another thread's latest.
        assert_eq!(launches.take_missing(10, 8), 1);
        assert_eq!(launches.take_missing(3, 7), 0);
        assert_eq!(launches.take_missing(10, 7), 1);
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
