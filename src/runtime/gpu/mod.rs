//! The interface to GPU runtimes. [`runtime`] defines the requests to a runtime, [`observers`] the observers of a runtime, and [`traced`] the
//! interface for a trace. [`build_id`] finds the build id of a loaded code object for both.

pub mod build_id;
pub mod copy_layout;
pub mod observers;
pub mod owner;
pub mod runtime;
pub mod traced;
