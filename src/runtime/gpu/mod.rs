//! The interface to GPU runtimes. [`runtime`] defines the requests to a runtime, [`observers`] the observers of a runtime.

pub mod copy_layout;
pub mod description;
pub mod observers;
pub mod owner;
pub mod runtime;
