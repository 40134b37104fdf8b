//! The source of the program's markers. The functions of roctx are in `exports`, the functions of NVTX in [`nvtx`].
//! [`entries`] passes the events of each thread to the completion thread, [`ranges`] and [`source`] make records of them.

mod domains;
mod entries;
pub mod nvtx;
mod ranges;
mod source;

pub use entries::{in_child, pop, push, push_unrecorded, record};
pub use ranges::{Action, MAX_TEXT};
pub use source::Markers;
