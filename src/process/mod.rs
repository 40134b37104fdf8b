//! When to act: loading, events of the GPU runtime, snapshots, signals, forks, exit.

mod collect;
mod events;
pub mod exit;
mod fork;
pub mod leader;
mod lifecycle;
pub mod request;
mod requests;
mod signals;
mod snapshot;
pub mod startup;
pub mod tool;
mod trace_guard;
