//! The source of the program's markers. [`roctx`] and [`nvtx`] have the functions, [`entries`] passes the events of each
//! thread to the completion thread, [`ranges`] and [`source`] make records of them.

mod domains;
mod entries;
mod nvtx;
mod ranges;
pub mod roctx;
mod source;

pub use entries::in_child;
pub use source::Markers;
