//! Numbers the flows from API calls to dispatches.

use crate::export::source;
use std::collections::HashMap;
use std::path::Path;

/// Numbers of dispatches by API call, in most cases in one byte per call.
#[derive(Default)]
struct Counts {
    /// By correlation ID, up to [`Counts::MAX_SMALL`].
    small: Vec<u8>,
    /// For larger numbers, the part above [`Counts::MAX_SMALL`].
    rest: HashMap<u64, u64>,
}

impl Counts {
    const MAX_SMALL: u8 = u8::MAX;
    /// IDs are consecutive numbers, so only a damaged trace has a larger ID.
    const MAX_ID: u64 = 1 << 28;

    fn get(&self, id: u64) -> u64 {
        let small = usize::try_from(id).ok().and_then(|id| self.small.get(id));
        let rest = self.rest.get(&id).copied().unwrap_or_default();
        u64::from(small.copied().unwrap_or_default()) + rest
    }

    fn add(&mut self, id: u64) {
        let index = id as usize;
        if id > Counts::MAX_ID {
            return;
        }
        if self.small.len() <= index {
            self.small.resize(index + 1, 0);
        }
        if self.small[index] < Counts::MAX_SMALL {
            self.small[index] += 1;
        } else {
            *self.rest.entry(id).or_default() += 1;
        }
    }
}

/// The flows from API calls to their dispatches.
#[derive(Default)]
pub struct Flows {
    /// All dispatches of each call.
    all: Counts,
    /// Those that have been written.
    written: Counts,
}

impl Flows {
    /// The number of low bits of a flow's ID that are the number of the dispatch in its call. Further dispatches of
    /// the call have no flow, which also limits the size of the call's slice.
    const BITS: u32 = 20;

    /// Counts the dispatches of each call in a trace.
    pub fn count(path: &Path) -> anyhow::Result<Flows> {
        let mut flows = Flows::default();
        source::each_dispatch(path, |dispatch| match dispatch.correlation.get() {
            0 => {}
            id => flows.all.add(id),
        })?;
        Ok(flows)
    }

    /// The number of dispatches of a call.
    pub fn dispatches(&self, id: u64) -> u64 {
        self.all.get(id)
    }

    /// The flows of a call.
    pub fn of_call(&self, id: u64) -> impl Iterator<Item = u64> {
        (0..self.all.get(id).min(1 << Flows::BITS)).map(move |n| id << Flows::BITS | n)
    }

    /// The flow to the next dispatch of a call, if it has one.
    pub fn next_of_call(&mut self, id: u64) -> Option<u64> {
        let n = self.written.get(id);
        let known = n < self.all.get(id).min(1 << Flows::BITS);
        known.then(|| {
            self.written.add(id);
            id << Flows::BITS | n
        })
    }
}
