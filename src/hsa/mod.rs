//! The only door to HSA and HIP: every call into them is in this folder, behind safe functions that check what comes
//! back.

mod api;
pub mod copy;
mod hip;
mod query;
pub mod tool;
pub mod types;

pub use api::{Api, Error, find};
pub use hip::synchronize;
pub use query::{agents, describe, segments, tables};
