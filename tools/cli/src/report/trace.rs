//! What a trace says of each kernel.

use crate::Console;
use crate::export::source::{self, Record, Tell};
use crate::names::Naming;
use std::collections::{BTreeMap, BTreeSet};
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
    let mut kernels: BTreeMap<String, Ran> = BTreeMap::new();
    let take = |record: &Record, trace: &mut source::Trace| {
        let Record::Dispatch(dispatch) = record else {
            return Ok(());
        };
        let symbol = match trace.kernel_symbol(dispatch.kernel.get()) {
            Some(name) => name.to_owned(),
            None => trace.kernel(dispatch.kernel.get()).to_string(),
        };
        let agent = trace.tables.agents.get(&dispatch.agent.get());
        let target = agent
            .and_then(|agent| trace.tables.text(agent.name.get()))
            .map(str::to_owned);
        let duration = trace.duration(dispatch);
        let ran = kernels.entry(symbol).or_default();
        ran.calls += 1;
        ran.architectures.extend(target);
        match duration {
            Ok(duration) => ran.time = ran.time.saturating_add(duration),
            Err(_) => ran.untimed += 1,
        }
        Ok(())
    };
    let (_, summary) = source::read(path, Naming::default(), Tell::Problems, console.say, take)?;
    Ok((kernels, summary.status() == 0))
}
