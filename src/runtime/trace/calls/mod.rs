//! The source of API calls: [`in_progress`] is on the program's thread, [`source`] records the calls. [`hip_functions`] lists
//! the functions of HIP.

pub mod hip_functions;
mod in_progress;
mod source;

pub use in_progress::{
    Call, Started, begin, current, in_child, pause, start, started, state, turn_off,
};
pub use source::Calls;
