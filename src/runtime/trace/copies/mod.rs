//! The source of HSA's copies and fills of memory: [`requests`] is on the program's thread, [`source`] records them.

mod requests;
mod source;

pub use requests::{begin, end, start, turn_off};
pub use source::Copies;
