//! The code objects that earlier drains have read.

use super::code_object::{self, Object};
use super::copy::Device;
use super::discover::{self, CodeObject, LoadedOn};
use super::kind::Executables;
use crate::gpu::runtime::{Agent, AgentId, Agents, Error, ExecutableId, IdMap, IdSet, Runtime};
use crate::support::diagnostics::Outcome;
use std::time::Duration;

/// Code objects by where they are loaded, including those without tables.
#[derive(Default)]
pub struct Cache(IdMap<ExecutableId, IdMap<AgentId, Object>>);

/// The code objects that an update has found.
pub struct Discovered {
    /// Where code objects are loaded, in the loader's order.
    pub loaded: Vec<LoadedOn>,
    /// How often the runtime did not list an executable's code objects or symbols. Each was reported.
    pub failed: usize,
}

impl Cache {
    pub fn get(&self, at: LoadedOn) -> Option<&Object> {
        self.0.get(&at.executable)?.get(&at.agent)
    }

    pub fn get_mut(&mut self, at: LoadedOn) -> Option<&mut Object> {
        self.0.get_mut(&at.executable)?.get_mut(&at.agent)
    }

    pub fn insert(&mut self, at: LoadedOn, object: Object) {
        let of_executable = self.0.entry(at.executable).or_default();
        of_executable.insert(at.agent, object);
    }

    pub fn remove(&mut self, executable: ExecutableId) {
        self.0.remove(&executable);
    }

    /// Discards code objects that may have been replaced by others, and those that could not be read completely.
    pub fn discard_unobserved(&mut self, executables: Executables) {
        self.0.retain(|executable, objects| {
            executables.is_observed(*executable)
                && objects.values().all(|object| object.is_complete)
        });
    }

    /// Whether no code object has counters or losses.
    pub fn is_empty(&self) -> bool {
        let mut objects = self.0.values().flat_map(IdMap::values);
        objects.all(Object::is_empty)
    }

    /// Whether an executable with counters is not observed.
    pub fn has_unobserved(&self, executables: Executables) -> bool {
        self.0.iter().any(|(&executable, objects)| {
            !executables.is_observed(executable) && !objects.values().all(Object::is_empty)
        })
    }

    /// Discards code objects that are not in the list of all loaded ones.
    pub fn discard_unloaded(&mut self, loaded: &[CodeObject]) {
        let existing: IdSet<_> = loaded.iter().map(|code| code.executable).collect();
        self.0.retain(|executable, _| existing.contains(executable));
    }

    /// Reads the code objects of the list that are not in the cache.
    pub fn update(
        &mut self,
        mut loaded: Vec<CodeObject>,
        runtime: &dyn Runtime,
        agents: &Agents,
        limit: Duration,
        outcome: &mut Outcome,
    ) -> Discovered {
        let location = |code: &CodeObject| LoadedOn {
            executable: code.executable,
            agent: agents.gpus[code.agent].id,
        };
        let locations: Vec<LoadedOn> = loaded.iter().map(location).collect();
        loaded.retain(|code| {
            let known = self.get(location(code));
            known.is_none_or(|object| object.code.segments != code.segments)
        });
        for code in &loaded {
            // Replaced below if the code object has tables.
            self.insert(location(code), Object::without_tables(code.clone()));
        }
        let (found, unread) = discover::with_tables(runtime, &agents.gpus, loaded);
        let failed = unread.len();
        for unread in unread {
            self.remove(unread.executable);
            outcome.lose(unread);
        }
        let mut of_agent: Vec<Vec<CodeObject>> = agents.gpus.iter().map(|_| Vec::new()).collect();
        for code in found {
            of_agent[code.agent].push(code);
        }
        for (agent, found) in agents.gpus.iter().zip(of_agent) {
            if found.is_empty() {
                continue;
            }
            let device = Device {
                runtime,
                agent: agent.id,
                limit,
            };
            let locations: Vec<LoadedOn> = found.iter().map(location).collect();
            match code_object::read(device, agent, found) {
                Ok(objects) => {
                    for (at, object) in locations.into_iter().zip(objects) {
                        self.insert(at, object);
                    }
                }
                Err(error) => {
                    // The next drain tries again.
                    for at in &locations {
                        self.remove(at.executable);
                    }
                    lose_all(outcome, locations.len(), agent, &error);
                }
            }
        }
        Discovered {
            loaded: locations,
            failed,
        }
    }
}

/// Reports that the counters of code objects on one agent are lost.
pub fn lose_all(outcome: &mut Outcome, count: usize, agent: &Agent, error: &Error) {
    outcome.lose(format_args!(
        "lost the counters of {count} code objects on {}: {error}",
        agent.name
    ));
}
