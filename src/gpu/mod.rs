//! GPU runtimes. [`runtime`] defines the requests to a runtime, [`observers`] the observers of a runtime.

pub mod counter_copies;
pub mod cuda;
pub mod hsa;
pub mod observers;
pub mod owner;
pub mod runtime;
