//! The kinds of drains: which code objects a drain collects, and what may happen during it.

use crate::gpu::runtime::{ExecutableId, IdMap, IdSet};

/// Why a drain runs. All differences between drains follow from this.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum DrainKind {
    /// The collect call, or the process exits: all executables, after all running kernels.
    All,
    /// HSA is about to be shut down, or a library is being closed: all executables, but HIP may be partly destroyed, so the
    /// drain does not wait for HIP's kernels. HSA may be shut down afterwards.
    Closing,
    /// Reset all counters, after all running kernels.
    Reset,
    /// A test has ended: all executables, after all running kernels, and then reset all counters.
    TestEnd,
    /// The executables whose destruction is observed. Others may be destroyed at any moment.
    Snapshot,
    /// An executable was frozen: only sets up copies of its counters.
    Frozen(ExecutableId),
    /// An executable is about to be destroyed.
    Destroying(ExecutableId),
}

impl DrainKind {
    /// The executable, if the drain is for one.
    pub fn executable(self) -> Option<ExecutableId> {
        match self {
            DrainKind::Frozen(executable) | DrainKind::Destroying(executable) => Some(executable),
            _ => None,
        }
    }

    /// Whether the drain is for all executables, after running kernels. Only the thread that ends the process may run it, after
    /// the end has begun. Other drains are allowed on all threads until the process has ended.
    pub fn is_complete(self) -> bool {
        matches!(
            self,
            DrainKind::All | DrainKind::Closing | DrainKind::Reset | DrainKind::TestEnd
        )
    }
}

/// The states of executables that drains depend on.
#[derive(Clone, Copy)]
pub struct Executables<'a> {
    /// The generation of each executable whose destruction will be observed. Its data that drains have read stays valid.
    pub observed: &'a IdMap<ExecutableId, u64>,
    /// Executables that a thread is destroying. They must not be accessed.
    pub destroying: &'a IdSet<ExecutableId>,
}

impl Executables<'_> {
    pub fn is_observed(&self, executable: ExecutableId) -> bool {
        self.observed.contains_key(&executable)
    }

    /// Whether an executable may be destroyed at any moment.
    pub fn may_be_destroyed(&self, executable: ExecutableId) -> bool {
        !self.is_observed(executable) && !self.destroying.contains(&executable)
    }
}
