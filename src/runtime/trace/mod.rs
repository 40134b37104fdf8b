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
//! to the completion thread). [`start`] begins the trace.

pub mod calls;
pub mod copies;
mod cuda;
mod devices;
mod dispatches;
mod hsa;
pub mod markers;
mod queues;
mod recorder;
mod session;
mod start;

pub use cuda::calls as cuda_calls;
pub use cuda::{activities_expected, context_destroying, cuda_now, cuda_started};
pub use dispatches::{
    dispatch_time, frozen, pause, queue_created, release, resume, signal_changed, signal_changing,
    signal_comparing, signal_destroying, slots_reserved,
};
pub use recorder::streams;
pub use session::recording::prepare;
pub use session::{end, finish, flush, set_recording};
pub use start::{in_child, profiler_switched, start, start_cuda};
