//! Reads the dispatches of each kernel from traces, of which there is one per process.

use crate::console::Console;
use crate::names::Naming;
use crate::trace_reader::{self, Checks, Record, Request, Selection};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

#[derive(Debug)]
pub struct Trace {
    pub path: String,
    pub pid: u32,
    /// By symbol, and by the build ID of the code object, in hexadecimal, if it is known.
    pub kernels: BTreeMap<String, BTreeMap<Option<String>, Dispatches>>,
    /// All of it could be read.
    pub is_complete: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Dispatches {
    pub calls: u64,
    /// Number of dispatches without times.
    pub untimed: u64,
    /// Total time of the others in nanoseconds.
    pub time: u64,
    /// The architectures of the agents on which they ran.
    pub architectures: BTreeSet<String>,
}

impl Dispatches {
    pub fn add(&mut self, other: &Dispatches) {
        self.calls += other.calls;
        self.untimed += other.untimed;
        self.time = self.time.saturating_add(other.time);
        self.architectures
            .extend(other.architectures.iter().cloned());
    }
}

impl Trace {
    /// The build IDs of the kernels with these symbols.
    pub fn build_ids_of(&self, is_wanted: impl Fn(&&str) -> bool) -> impl Iterator<Item = &String> {
        let wanted = self.kernels.iter();
        let wanted = wanted.filter(move |(symbol, _)| is_wanted(&symbol.as_str()));
        wanted.flat_map(|(_, own)| own.keys().flatten())
    }

    /// Forgets of which code objects the kernels are.
    pub fn remove_build_ids(&mut self) {
        for of_symbol in self.kernels.values_mut() {
            let mut all = Dispatches::default();
            of_symbol.values().for_each(|own| all.add(own));
            *of_symbol = BTreeMap::from([(None, all)]);
        }
    }
}

pub fn read(path: &Path, console: &mut Console) -> anyhow::Result<Trace> {
    // By kernel and agent ID, so that names are looked up once per kernel and not once per dispatch.
    let mut by_id: HashMap<(u32, u32), Dispatches> = HashMap::new();
    let take = |record: &Record, trace: &mut trace_reader::Trace| {
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
    let all = Selection::default();
    let request = Request::new(&all, Naming::default());
    let (mut trace, summary) = trace_reader::read(path, request, Checks::Records, console, take)?;
    let mut kernels: BTreeMap<String, BTreeMap<Option<String>, Dispatches>> = BTreeMap::new();
    for ((kernel, agent), own) in by_id {
        let symbol = match trace.kernel_symbol(kernel) {
            Some(symbol) => symbol.to_owned(),
            None => trace.kernel(kernel).to_string(),
        };
        let build_id = trace.build_id(kernel).map(str::to_owned);
        let agent = trace.tables.agents.get(&agent);
        let target = agent.and_then(|agent| trace.tables.text(agent.name.get()));
        let of_symbol = kernels.entry(symbol).or_default();
        let sum = of_symbol.entry(build_id).or_default();
        sum.add(&own);
        sum.architectures.extend(target.map(str::to_owned));
    }
    Ok(Trace {
        path: path.display().to_string(),
        pid: trace.header.pid.get(),
        kernels,
        is_complete: !summary.is_damaged,
    })
}
