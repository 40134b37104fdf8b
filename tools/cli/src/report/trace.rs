//! Reads the dispatches of each kernel from a trace.

use crate::Console;
use crate::export::source::{self, Checks, Record};
use crate::names::Naming;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

/// The dispatches of a kernel.
#[derive(Debug, Default)]
pub struct Dispatches {
    pub calls: u64,
    /// Number of dispatches without times.
    pub untimed: u64,
    /// Total time of the others in nanoseconds.
    pub time: u64,
    /// The architectures of the agents on which they ran.
    pub architectures: BTreeSet<String>,
}

/// The kernels of a trace by their symbols, and whether all of the trace could be read.
pub fn read(
    path: &Path,
    console: &mut Console,
) -> anyhow::Result<(BTreeMap<String, Dispatches>, bool)> {
    // By kernel and agent ID, so that names are looked up once per kernel and not once per dispatch.
    let mut by_id: HashMap<(u32, u32), Dispatches> = HashMap::new();
    let take = |record: &Record, trace: &mut source::Trace| {
        if let Record::Dispatch(dispatch) = record {
            let own = by_id
                .entry((dispatch.kernel.get(), dispatch.agent.get()))
                .or_default();
            own.calls += 1;
            match trace.duration(dispatch) {
                Ok(duration) => own.time = own.time.saturating_add(duration),
                Err(_) => own.untimed += 1,
            }
        }
        Ok(())
    };
    let (mut trace, summary) =
        source::read(path, Naming::default(), Checks::Records, console, take)?;
    let mut kernels: BTreeMap<String, Dispatches> = BTreeMap::new();
    for ((kernel, agent), own) in by_id {
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
    Ok((kernels, !summary.is_damaged))
}
