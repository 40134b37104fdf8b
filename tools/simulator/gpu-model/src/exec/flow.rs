//! What a wave does after an instruction.

/// The next step of a wave after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Continue at the program counter.
    Next,
    /// Wait until the other waves of the workgroup have signalled the barrier.
    Barrier,
    /// Let other waves run first (`s_sleep`).
    Yield,
    /// Discard the decoded instructions (`s_icache_inv`).
    Refetch,
    /// The wave has ended.
    End,
}
