//! What a wave does after an instruction.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Go on at the program counter.
    Next,
    /// Wait for the other waves of the workgroup.
    Barrier,
    /// Let others run first (`s_sleep`).
    Yield,
    /// Forget the decoded instructions (`s_icache_inv`).
    Refetch,
    End,
}
