//! Reads the dispatches of each kernel from traces, of which there is one per process.

use crate::console::Console;
use crate::names::Naming;
use crate::trace_reader::{self, Checks, Record, Request, Selection};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

#[derive(Debug, Default)]
pub struct Trace {
    pub path: String,
    pub pid: u32,
    /// By symbol, and by the build ID of the code object, in hexadecimal, if it is known.
    pub kernels: BTreeMap<String, BTreeMap<Option<String>, Dispatches>>,
    /// The kernels of all code that the process loaded, whether they ran or not. Of CUDA, only those that ran.
    pub loaded: BTreeSet<String>,
    /// The architectures of the GPUs on which kernels ran, or of all GPUs if none ran.
    pub gpus: BTreeSet<String>,
    /// The recording was stopped for a part of the run.
    pub was_stopped: bool,
    /// The number of dispatches that were not recorded.
    pub dropped: u64,
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
    let mut was_stopped = false;
    let take = |record: &Record, trace: &mut trace_reader::Trace| {
        match record {
            Record::Dispatch(dispatch) => {
                let own = by_id
                    .entry((dispatch.kernel.get(), dispatch.agent.get()))
                    .or_default();
                own.calls += 1;
                match trace.duration(dispatch) {
                    Ok(duration) => own.time = own.time.saturating_add(duration),
                    Err(_) => own.untimed += 1,
                }
            }
            Record::Recording(_) => was_stopped = true,
            _ => {}
        }
        Ok(())
    };
    let all = Selection::default();
    let request = Request::new(&all, Naming::default());
    let (mut trace, summary) = trace_reader::read(path, request, Checks::Records, console, take)?;
    let tables = &trace.tables;
    let loaded = tables.kernels.values();
    let loaded = loaded.filter_map(|kernel| tables.text(kernel.name.get()));
    let loaded = loaded.map(str::to_owned).collect();
    let gpus = tables.agents.keys().filter(|id| trace.is_gpu(**id));
    let gpus: Vec<u32> = gpus.copied().collect();
    let ran: BTreeSet<u32> = by_id.keys().map(|(_, agent)| *agent).collect();
    let gpus = gpus.iter().filter(|id| ran.is_empty() || ran.contains(id));
    let gpus = gpus.filter_map(|id| tables.text(tables.agents[id].name.get()));
    let gpus = gpus.map(str::to_owned).collect();
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
        loaded,
        gpus,
        was_stopped,
        dropped: summary.dropped,
        is_complete: !summary.is_damaged,
    })
}
