//! The trace of kernel dispatches (`DEVPROF_TRACE`): the format, for the runtime that writes it, and a reader for the
//! tools.

#![forbid(unsafe_code)]

pub mod format;
pub mod reader;

pub use reader::{Damage, Error, Reader, Tables};
