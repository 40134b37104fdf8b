//! GPU runtimes. [`runtime`] defines the requests to a runtime, [`events`] the events that a runtime reports.

pub mod counter_copies;
pub mod cuda;
pub mod events;
pub mod hsa;
pub mod runtime;
