//! Data that must be known before the output is written: the number of dispatches and copies of each API call, and the
//! names that the program gives. Their records may follow the records of the slices and tracks that need them.

use crate::trace_reader::{self, Record, Request};
use std::collections::HashMap;
use std::path::Path;

/// Numbers of dispatches or copies by API call, in most cases in one byte per call.
#[derive(Default)]
pub struct Counts {
    /// By correlation ID, up to [`Counts::MAX_SMALL`].
    small: Vec<u8>,
    /// For larger numbers, the part above [`Counts::MAX_SMALL`].
    rest: HashMap<u64, u64>,
}

impl Counts {
    const MAX_SMALL: u8 = u8::MAX;
    /// IDs are consecutive numbers, so only a damaged trace has a larger ID.
    const MAX_ID: u64 = (1 << Counts::ID_BITS) - 1;
    const ID_BITS: u32 = 28;

    pub fn get(&self, id: u64) -> u64 {
        let small = usize::try_from(id).ok().and_then(|id| self.small.get(id));
        let rest = self.rest.get(&id).copied().unwrap_or_default();
        u64::from(small.copied().unwrap_or_default()) + rest
    }

    fn add(&mut self, id: u64) {
        let index = id as usize;
        if id == 0 || id > Counts::MAX_ID {
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

/// The results of the first pass over a trace.
#[derive(Default)]
pub struct FirstPass {
    pub flows: Flows,
    /// The last name of each thread, stream and agent that the program named, by type ([`tracefile::format::named`])
    /// and ID.
    pub names: HashMap<(u32, u64), String>,
}

impl FirstPass {
    /// `number` is the number of the trace, from 0.
    pub fn read(path: &Path, request: Request, number: u32) -> anyhow::Result<FirstPass> {
        let mut first = FirstPass::default();
        first.flows.trace = number.into();
        // Damage is reported in the second pass.
        trace_reader::each_record(path, request, |record, trace| match record {
            Record::Dispatch(dispatch) => first.flows.dispatches.add(dispatch.correlation.get()),
            Record::Copy(copy) => first.flows.copies.add(copy.correlation.get()),
            Record::Name(name) => {
                if let Some(text) = trace.tables.text(name.text.get()) {
                    let object = (name.what.get(), name.head.id.get());
                    first.names.insert(object, text.to_owned());
                }
            }
            _ => {}
        })?;
        Ok(first)
    }
}

/// The flows from API calls to their dispatches and copies.
#[derive(Default)]
pub struct Flows {
    /// Dispatches and copies of each call.
    pub dispatches: Counts,
    pub copies: Counts,
    /// Dispatches and copies that have been written.
    written: Counts,
    /// The number of the trace, which is less than 2^16.
    trace: u64,
}

impl Flows {
    /// How many low bits of a flow's ID are the number of the dispatch or copy in its call. If a call has more, those
    /// have no flow, which also limits the size of the call's slice.
    const BITS: u32 = 20;

    /// The number of flows of a call.
    fn number(&self, id: u64) -> u64 {
        (self.dispatches.get(id) + self.copies.get(id)).min(1 << Flows::BITS)
    }

    /// The flows of a call.
    pub fn of_call(&self, id: u64) -> impl Iterator<Item = u64> {
        (0..self.number(id)).map(move |n| self.flow(id, n))
    }

    /// The ID of a flow. The flows of all traces have different ones.
    fn flow(&self, call: u64, n: u64) -> u64 {
        self.trace << (Flows::BITS + Counts::ID_BITS) | call << Flows::BITS | n
    }

    /// The flow to the next dispatch or copy of a call, if it has one.
    pub fn next_of_call(&mut self, id: u64) -> Option<u64> {
        let n = self.written.get(id);
        (n < self.number(id)).then(|| {
            self.written.add(id);
            self.flow(id, n)
        })
    }
}
