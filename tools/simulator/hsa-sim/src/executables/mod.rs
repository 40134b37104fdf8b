//! Code objects and executables.

pub mod code_object;
pub mod kernel;
pub mod storage;
pub mod table;
