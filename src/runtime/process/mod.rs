//! When to act: loading, events of the GPU runtime, snapshots, signals, forks, exit.

mod collect;
pub mod cuda;
mod cuda_trace;
pub mod exit;
mod fork;
mod handler;
pub mod leader;
mod lifecycle;
mod observers;
pub mod request;
mod signals;
mod snapshot;
pub mod startup;
pub mod tool;
