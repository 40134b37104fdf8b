//! Memory pools and allocations.

pub mod allocations;
pub mod pools;
