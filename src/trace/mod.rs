//! The trace: every kernel dispatch and the API call that made it, with their times (`DEVPROF_TRACE`).
//!
//! The stages of a dispatch, one module each:
//!
//! | stage | module |
//! | --- | --- |
//! | the API call in progress on the thread | [`hip_calls`], [`calls`] |
//! | the thread that writes a packet, and when | [`packet_origins`] |
//! | the packets that the program has written | [`capture`] |
//! | to the completion thread, and signals back | [`in_flight`], over [`fifo`]; [`poll_flag`], [`wakeup`] |
//! | times, names, the record | [`complete`], [`kernel_index`] |
//! | the file | [`file`] |
//!
//! [`session`] is the trace of this process, from its start to its end.

mod atomics;
pub mod calls;
mod capture;
mod clock;
mod complete;
mod dispatch_clock;
mod fifo;
mod file;
mod hip_calls;
mod in_flight;
mod kernel_index;
mod packet_origins;
mod poll_flag;
mod session;
mod wakeup;

pub use session::{
    dispatch_time, end, finish, frozen, in_child, pause, queue_created, release, resume,
    signal_destroying, slots_reserved, start,
};
