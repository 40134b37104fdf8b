//! GPU runtimes. [`runtime`] has the requests that go down to one, [`events`] what comes up from it.

pub mod events;
pub mod hsa;
pub mod runtime;
