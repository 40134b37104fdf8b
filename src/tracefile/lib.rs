//! The file of dispatch records (`DEVPROF_TRACE`), version 1: its format for the runtime that writes it, and a reader
//! for the tools that read it.

pub mod format;
pub mod reader;

pub use reader::{Damage, Error, Reader, Tables};
