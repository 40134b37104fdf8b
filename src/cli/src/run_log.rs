//! The log that the runtime writes during `devprof run`, and the information about the run in it.

pub mod device_code;
pub mod journal;
pub mod saved;
