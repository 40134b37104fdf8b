//! What a trace says of each kernel.

use crate::Console;
use crate::export::source::{self, Record, Tell};
use crate::names::Naming;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

/// A kernel's dispatches.
#[derive(Debug, Default)]
pub struct Ran {
    pub calls: u64,
    /// Those of them that have no times.
    pub untimed: u64,
    /// Nanoseconds of the others.
    pub time: u64,
    /// The targets of the agents that they ran on.
    pub architectures: BTreeSet<String>,
}

/// The kernels of a trace by their symbols, and whether all of the trace could be read.
pub fn read(path: &Path, console: &mut Console) -> Result<(BTreeMap<String, Ran>, bool), String> {
    // Names are looked up once a kernel, not once a dispatch.
    let mut ran: HashMap<(u32, u32), Ran> = HashMap::new();
    let take = |record: &Record, trace: &mut source::Trace| {
        if let Record::Dispatch(dispatch) = record {
            let ran = ran
                .entry((dispatch.kernel.get(), dispatch.agent.get()))
                .or_default();
            ran.calls += 1;
            match trace.duration(dispatch) {
                Ok(duration) => ran.time = ran.time.saturating_add(duration),
                Err(_) => ran.untimed += 1,
            }
        }
        Ok(())
    };
    let (mut trace, summary) =
        source::read(path, Naming::default(), Tell::Problems, console.say, take)?;
    let mut kernels: BTreeMap<String, Ran> = BTreeMap::new();
    for ((kernel, agent), own) in ran {
        let symbol = match trace.kernel_symbol(kernel) {
            Some(symbol) => symbol.to_owned(),
            None => trace.kernel(kernel).to_string(),
        };
        let agent = trace.tables.agents.get(&agent);
        let target = agent.and_then(|agent| trace.tables.text(agent.name.get()));
        let sum = kernels.entry(symbol).or_default();
        sum.calls += own.calls;
        sum.untimed += own.untimed;
        sum.time = sum.time.saturating_add(own.time);
        sum.architectures.extend(target.map(str::to_owned));
    }
    Ok((kernels, summary.status() == 0))
}
