//! The first stage: the loaded code objects, and which of them have bounds tables.

use crate::gpu::runtime::{
    Agent, AgentId, Agents, Error, ExecutableId, IdMap, Runtime, Segment, Segments, Variable,
};
use std::ops::Range;

/// Where a code object is loaded. An executable has at most one code object on each agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LoadedOn {
    pub executable: ExecutableId,
    pub agent: AgentId,
}

/// A code object that an executable has loaded on an agent.
#[derive(Clone, Debug)]
pub struct CodeObject {
    pub executable: ExecutableId,
    /// Index into the agents.
    pub agent: usize,
    /// Device addresses, in ascending order.
    pub segments: Vec<Range<u64>>,
    /// Variables that have the name of a bounds table.
    pub tables: Vec<Variable>,
}

const TABLE: &[u8] = b"__llvm_profile_sections";

/// Whether a variable has the name of a bounds table: of the device runtime (`__llvm_profile_sections`), or of a
/// translation unit (clang 23, `__llvm_profile_sections_<CUID>`).
fn is_table_name(name: &[u8]) -> bool {
    name.strip_prefix(TABLE)
        .is_some_and(|rest| rest.is_empty() || rest[0] == b'_')
}

/// A part of the runtime's state that could not be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {what} of executable {executable}{}{}: {error}", if agent.is_empty() { "" } else { " on " }, agent)]
pub struct Unread {
    pub what: &'static str,
    pub executable: ExecutableId,
    /// The agent's name; empty if it is unknown.
    pub agent: String,
    pub error: Error,
}

/// The segments of one executable.
pub fn segments_of(runtime: &dyn Runtime, executable: ExecutableId) -> Segments {
    match runtime.segments_of(executable) {
        Ok(found) => Segments {
            found,
            ..Segments::default()
        },
        Err(error) => Segments {
            failed: vec![(executable, error)],
            ..Segments::default()
        },
    }
}

/// The code objects with these segments, in the loader's order, without their tables, and what could not be read.
pub fn loaded(segments: Segments, agents: &Agents) -> (Vec<CodeObject>, Vec<Unread>) {
    let Segments { found, failed } = segments;
    let mut unread = on_unknown_agents(&found, &agents.unknown);
    unread.extend(failed.into_iter().map(|(executable, error)| Unread {
        what: "the code objects",
        executable,
        agent: String::new(),
        error,
    }));
    (group(&found, &agents.gpus), unread)
}

/// Reads the names of the code objects' tables. Returns the code objects that have some, and what could not be read.
pub fn with_tables(
    runtime: &dyn Runtime,
    agents: &[Agent],
    objects: impl IntoIterator<Item = CodeObject>,
) -> (Vec<CodeObject>, Vec<Unread>) {
    let (mut found, mut unread) = (Vec::new(), Vec::new());
    for mut object in objects {
        let agent = &agents[object.agent];
        match tables(runtime, object.executable, agent) {
            Ok(tables) if tables.is_empty() => {}
            Ok(tables) => {
                object.tables = tables;
                found.push(object);
            }
            Err(error) => unread.push(Unread {
                what: "the symbols",
                executable: object.executable,
                agent: agent.name.clone(),
                error,
            }),
        }
    }
    (found, unread)
}

/// The tables of one code object.
pub fn tables(
    runtime: &dyn Runtime,
    executable: ExecutableId,
    agent: &Agent,
) -> Result<Vec<Variable>, Error> {
    runtime.variables(executable, agent.id, is_table_name)
}

/// The code objects on agents whose description could not be read.
fn on_unknown_agents(segments: &[Segment], unknown: &[(AgentId, Error)]) -> Vec<Unread> {
    let mut unread = Vec::<Unread>::new();
    for segment in segments {
        let Some((agent, error)) = unknown.iter().find(|(agent, _)| *agent == segment.agent) else {
            continue;
        };
        let name = format!("agent {:#x}", agent.hsa_handle());
        let executable = segment.executable;
        if !unread
            .iter()
            .any(|u| u.executable == executable && u.agent == name)
        {
            unread.push(Unread {
                what: "the symbols",
                executable,
                agent: name,
                error: error.clone(),
            });
        }
    }
    unread
}

/// One code object for each executable and agent, in the order of their first segments.
fn group(segments: &[Segment], agents: &[Agent]) -> Vec<CodeObject> {
    let index: IdMap<AgentId, usize> = agents
        .iter()
        .enumerate()
        .map(|(n, agent)| (agent.id, n))
        .collect();
    let mut indices: IdMap<(ExecutableId, usize), usize> = IdMap::default();
    let mut objects = Vec::<CodeObject>::new();
    for segment in segments {
        let Some(&agent) = index.get(&segment.agent) else {
            continue;
        };
        let Some(end) = segment.base.checked_add(segment.size) else {
            continue;
        };
        let n = *indices
            .entry((segment.executable, agent))
            .or_insert_with(|| {
                objects.push(CodeObject {
                    executable: segment.executable,
                    agent,
                    segments: Vec::new(),
                    tables: Vec::new(),
                });
                objects.len() - 1
            });
        // A sort would make the archive larger.
        let segments = &mut objects[n].segments;
        let at = segments.partition_point(|other| other.start < segment.base);
        segments.insert(at, segment.base..end);
    }
    objects
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_recognized_by_their_names() {
        assert!(is_table_name(b"__llvm_profile_sections"));
        assert!(is_table_name(b"__llvm_profile_sections_430ff7ebd73179a7"));
        assert!(!is_table_name(b"__llvm_profile_sectionsX"));
        assert!(!is_table_name(b"my__llvm_profile_sections"));
        assert!(!is_table_name(b"__llvm_profile_raw_version"));
    }

    #[test]
    fn segments_are_grouped_by_executable_and_agent() {
        let agents: Vec<Agent> = [7, 8]
            .map(|n| Agent {
                id: AgentId::Hsa(n),
                name: format!("gfx{n}"),
            })
            .into();
        let segment = |agent, executable, base, size| Segment {
            agent: AgentId::Hsa(agent),
            executable: ExecutableId::Hsa(executable),
            base,
            size,
        };
        let objects = group(
            &[
                segment(7, 1, 0x3000, 0x10),
                segment(8, 1, 0x9000, 0x10),
                segment(7, 1, 0x1000, 0x20),
                segment(9, 1, 0x5000, 0x20),
                segment(7, 2, u64::MAX, 2),
            ],
            &agents,
        );
        let found: Vec<_> = objects
            .iter()
            .map(|o| (o.executable.hsa_handle(), o.agent, o.segments.clone()))
            .collect();
        assert_eq!(found[0], (1, 0, vec![0x1000..0x1020, 0x3000..0x3010]));
        assert_eq!(
            (found[1].0, found[1].1, &found[1].2[0]),
            (1, 1, &(0x9000..0x9010))
        );
        assert_eq!(found.len(), 2);
    }
}
