//! Profile files: their names, and how they are written.

pub mod atomic_file;
pub mod pattern;
pub mod profile_files;
pub mod target;
