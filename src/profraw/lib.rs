//! LLVM's raw profile format (`.profraw`), versions 10 and 11, for the runtime that writes it and the tools that read
//! it. The authority is `profile/InstrProfData.inc` of LLVM 22 and 23.

pub mod format;
pub mod names;
pub mod reader;

pub use reader::{Error, Layout, Place, Record, end, end_of_file, places, records};
