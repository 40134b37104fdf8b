//! The interface to GPU runtimes. [`runtime`] defines the requests to a runtime, [`observers`] the observers of a runtime.

pub mod counter_copies;
pub mod observers;
pub mod owner;
pub mod runtime;
