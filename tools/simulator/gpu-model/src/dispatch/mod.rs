//! A kernel dispatch: from the packet and the kernel descriptor to workgroups and waves, until all waves have ended.
//!
//! A wave is interpreter state. The waves of one workgroup run on one host thread and take turns: at barriers, at
//! `s_sleep`, and after a bounded number of instructions, so that a wave can wait for another one. The workgroups of a
//! dispatch take turns in the same way, on the thread that calls [`Gpu::dispatch`] and, if the dispatch takes long, on
//! helper threads.

mod code_cache;
mod descriptor;
mod error;
mod gpu;
mod interpreter;
mod packet;
mod placement;
mod run;
mod stats;
mod symbol;
mod workgroup;

pub(crate) use descriptor::Descriptor;
pub use error::{Error, FaultReport};
pub use gpu::Gpu;
pub use packet::Packet;
pub use stats::Stats;
