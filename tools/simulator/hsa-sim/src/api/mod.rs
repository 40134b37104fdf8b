//! What the library exports.

mod older_names;
pub mod tables;
