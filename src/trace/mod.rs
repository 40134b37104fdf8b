//! The trace (`DEVPROF_TRACE`): all kernel dispatches and the API calls that launched them, with their times.
//!
//! The stages of a dispatch and their modules:
//!
//! | stage | module |
//! | --- | --- |
//! | the API call in progress on a thread, and its stream | [`hip_calls`], [`dlsym`], [`calls`], [`streams`] |
//! | which thread writes a packet, and when | [`packet_origins`] |
//! | processing the packets that the program writes | [`capture`] |
//! | entries for the completion thread, signals from it | [`in_flight`], based on [`fifo`]; [`poll_flag`], [`wakeup`] |
//! | the dispatch's kernel, times and record | [`complete`], [`kernel_index`], [`dispatch_clock`] |
//! | writing the file | [`file`] |
//!
//! [`session`] manages the trace of this process from its start to its end.

mod atomics;
pub mod calls;
mod capture;
mod clock;
mod complete;
mod dispatch_clock;
mod dlsym;
mod fifo;
mod file;
mod hip_calls;
mod hip_functions;
mod in_flight;
mod kernel_index;
mod packet_origins;
mod poll_flag;
mod session;
mod streams;
mod wakeup;

pub use session::{
    dispatch_time, end, finish, frozen, in_child, pause, queue_created, release, resume,
    signal_destroying, slots_reserved, start,
};
