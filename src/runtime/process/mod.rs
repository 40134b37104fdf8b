//! When to act: loading, events of the GPU runtime, snapshots, signals, forks, exit.

mod collect;
pub mod cuda;
mod cuda_trace;
pub mod exit;
mod fork;
pub mod leader;
mod lifecycle;
mod observers;
pub mod request;
mod requests;
mod signals;
mod snapshot;
pub mod startup;
pub mod tool;
