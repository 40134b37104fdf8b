//! Profile files: their names, and how they are written.

#![forbid(unsafe_code)]

pub mod atomic_file;
mod earlier_program;
mod lock;
pub mod pattern;
pub mod profile_files;
pub mod target;
pub mod test_files;
