//! The only door to HSA and HIP: every call into them is in this folder, behind safe functions that check what comes
//! back.

mod api;
pub mod cooperative;
pub mod copy;
mod doorbell;
pub mod gpus;
mod hip;
pub mod intercept;
mod linked;
pub mod originals;
mod query;
mod queue_functions;
pub mod queues;
mod quiesce;
pub mod times;
pub mod tool;
pub mod types;
mod write_back;

pub use api::{Api, Error, find, remember_tables};
pub use hip::function as hip_function;
pub use query::{Agents, agents, describe, segments, segments_of, tables};
pub use quiesce::{Waited, quiesce, settle};
