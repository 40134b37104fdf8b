//! The trace (`DEVPROF_TRACE`): all kernel dispatches and the API calls that launched them, with their times. On
//! request also all other API calls, copies of memory and the program's markers.
//!
//! The [`recorder`] owns the trace file and the tables that its records refer to. The [`session`] polls a list of sources,
//! each of which makes one kind of records; it knows no GPU runtime.
//!
//! | source | records |
//! | --- | --- |
//! | [`dispatches`] | dispatches in HSA's queues |
//! | [`copies`] | HSA's copies and fills, if requested |
//! | [`cuda`] | CUDA's kernels and copies, from CUPTI |
//! | [`calls`] | API calls |
//! | [`markers`] | the program's markers, ranges and names |
//!
//! They share [`hsa`] (the state of HSA, and the program's signals), [`devices`] and [`queues`] (from the program's threads
//! to the completion thread). [`observer`] observes the GPU runtimes, [`start`] begins the trace.

pub mod calls;
pub mod copies;
mod cuda;
mod devices;
mod dispatches;
mod hsa;
pub mod markers;
mod observer;
mod queues;
mod recorder;
mod session;
mod start;

pub use cuda::{cuda_now, cuda_started};
pub use observer::{Observer, release};
pub use recorder::streams;
pub use session::recording::prepare;
pub use session::{after_fork, before_fork, end, finish, flush, set_recording};
pub use start::{in_child, start, start_cuda};
