//! Which code objects a drain collects.

use crate::gpu::runtime::ExecutableId;
use std::collections::{HashMap, HashSet};

/// The code objects that a drain collects.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    All,
    /// Those of one executable.
    Executable(ExecutableId),
    /// Those of executables whose destruction is observed: they cannot be destroyed during the drain.
    Observed,
}

/// The states of executables that drains depend on.
#[derive(Clone, Copy)]
pub struct Executables<'a> {
    /// The generation of each executable whose destruction will be observed. What drains have read of it stays valid.
    pub observed: &'a HashMap<ExecutableId, u64>,
    /// Executables that a thread is destroying. They must not be accessed.
    pub destroying: &'a HashSet<ExecutableId>,
}

impl Executables<'_> {
    pub fn is_observed(&self, executable: ExecutableId) -> bool {
        self.observed.contains_key(&executable)
    }
}
