//! First stage: which code objects are loaded on which agent, and which of them carry bounds tables.

use crate::hsa::types::{AgentHandle, ExecutableHandle};
use crate::hsa::{self, Api};
use std::collections::HashMap;
use std::ops::Range;

/// A GPU agent.
#[derive(Clone, Debug)]
pub struct Agent {
    pub handle: AgentHandle,
    /// The target's name without features, such as `gfx1100`.
    pub name: String,
}

/// A loaded segment of a code object, as HSA's loader tells it.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    pub agent: AgentHandle,
    pub executable: ExecutableHandle,
    /// Device address.
    pub base: u64,
    /// Bytes.
    pub size: u64,
}

/// A symbol that claims to be a table of profile section bounds.
#[derive(Clone, Debug)]
pub struct Table {
    pub name: String,
    /// Device address.
    pub address: u64,
    /// Bytes, as the symbol has it.
    pub size: u64,
}

/// What one executable has loaded on one agent.
#[derive(Clone, Debug)]
pub struct CodeObject {
    pub executable: ExecutableHandle,
    /// Index into the agents.
    pub agent: usize,
    /// Device addresses, in order of their start.
    pub segments: Vec<Range<u64>>,
    pub tables: Vec<Table>,
}

const TABLE: &[u8] = b"__llvm_profile_sections";

/// Whether a variable is a bounds table by its name: the device runtime's (`__llvm_profile_sections`), or a
/// translation unit's of clang 23 (`__llvm_profile_sections_<CUID>`).
pub fn is_table_name(name: &[u8]) -> bool {
    name.strip_prefix(TABLE)
        .is_some_and(|rest| rest.is_empty() || rest[0] == b'_')
}

/// What could not be looked at.
#[derive(Debug, thiserror::Error)]
#[error("{what} of executable {:#x}{}{}: {error}", executable.0, if agent.is_empty() { "" } else { " on " }, agent)]
pub struct Unseen {
    pub what: &'static str,
    pub executable: ExecutableHandle,
    /// The agent's name, if it is known which one.
    pub agent: String,
    pub error: hsa::Error,
}

/// The code objects that are loaded, in the loader's order, without their tables; and what could not be looked at.
/// `only`: those of one executable.
pub fn loaded(
    api: &'static Api,
    agents: &[Agent],
    unknown: &[(AgentHandle, hsa::Error)],
    only: Option<ExecutableHandle>,
) -> Result<(Vec<CodeObject>, Vec<Unseen>), hsa::Error> {
    let (segments, silent) = match only {
        Some(executable) => match hsa::segments_of(api, executable) {
            Ok(segments) => (segments, Vec::new()),
            Err(error) => (Vec::new(), vec![(executable, error)]),
        },
        None => hsa::segments(api)?,
    };
    let mut unseen = on_unknown(&segments, unknown);
    unseen.extend(silent.into_iter().map(|(executable, error)| Unseen {
        what: "the code objects",
        executable,
        agent: String::new(),
        error,
    }));
    Ok((group(&segments, agents), unseen))
}

/// Looks for the tables of code objects: those that have some, and what could not be looked at.
pub fn with_tables(
    api: &'static Api,
    agents: &[Agent],
    objects: impl IntoIterator<Item = CodeObject>,
) -> (Vec<CodeObject>, Vec<Unseen>) {
    let (mut found, mut unseen) = (Vec::new(), Vec::new());
    for mut object in objects {
        let agent = &agents[object.agent];
        match hsa::tables(api, object.executable, agent.handle) {
            Ok(tables) if tables.is_empty() => {}
            Ok(tables) => {
                object.tables = tables;
                found.push(object);
            }
            Err(error) => unseen.push(Unseen {
                what: "the symbols",
                executable: object.executable,
                agent: agent.name.clone(),
                error,
            }),
        }
    }
    (found, unseen)
}

/// What is loaded on agents that do not tell what they are.
fn on_unknown(segments: &[Segment], unknown: &[(AgentHandle, hsa::Error)]) -> Vec<Unseen> {
    let mut unseen = Vec::<Unseen>::new();
    for segment in segments {
        let Some((agent, error)) = unknown.iter().find(|(agent, _)| *agent == segment.agent) else {
            continue;
        };
        let name = format!("agent {:#x}", agent.0);
        let executable = segment.executable;
        if !unseen
            .iter()
            .any(|u| u.executable == executable && u.agent == name)
        {
            unseen.push(Unseen {
                what: "the symbols",
                executable,
                agent: name,
                error: error.clone(),
            });
        }
    }
    unseen
}

/// One code object for each executable and agent, in the order of their first segments.
fn group(segments: &[Segment], agents: &[Agent]) -> Vec<CodeObject> {
    let index: HashMap<AgentHandle, usize> = agents
        .iter()
        .enumerate()
        .map(|(n, agent)| (agent.handle, n))
        .collect();
    let mut place = HashMap::new();
    let mut objects = Vec::<CodeObject>::new();
    for segment in segments {
        let Some(&agent) = index.get(&segment.agent) else {
            continue;
        };
        let Some(end) = segment.base.checked_add(segment.size) else {
            continue;
        };
        let n = *place.entry((segment.executable, agent)).or_insert_with(|| {
            objects.push(CodeObject {
                executable: segment.executable,
                agent,
                segments: Vec::new(),
                tables: Vec::new(),
            });
            objects.len() - 1
        });
        objects[n].segments.push(segment.base..end);
    }
    for object in &mut objects {
        object.segments.sort_by_key(|segment| segment.start);
    }
    objects
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_known_by_its_name() {
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
                handle: AgentHandle(n),
                name: format!("gfx{n}"),
            })
            .into();
        let segment = |agent, executable, base, size| Segment {
            agent: AgentHandle(agent),
            executable: ExecutableHandle(executable),
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
        let seen: Vec<_> = objects
            .iter()
            .map(|o| (o.executable.0, o.agent, o.segments.clone()))
            .collect();
        assert_eq!(seen[0], (1, 0, vec![0x1000..0x1020, 0x3000..0x3010]));
        assert_eq!(
            (seen[1].0, seen[1].1, &seen[1].2[0]),
            (1, 1, &(0x9000..0x9010))
        );
        assert_eq!(seen.len(), 2);
    }
}
