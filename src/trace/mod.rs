//! The trace (`DEVPROF_TRACE`): all kernel dispatches and the API calls that launched them, with their times. On
//! request also all other API calls, copies of memory and the program's markers.
//!
//! The stages of a dispatch and their modules:
//!
//! | stage | module |
//! | --- | --- |
//! | whether anything is recorded now | [`recording`]; [`switches`] |
//! | the API call in progress on a thread, and its stream | `exports/hip.rs`, [`calls`], [`streams`] |
//! | which thread writes a packet, and when | [`packet_origins`] |
//! | processing the packets that the program writes | [`capture`] |
//! | entries for the completion thread, signals from it | [`in_flight`], based on [`fifo`]; [`poll_flag`], [`wakeup`] |
//! | the program's own completion signals | [`watched_signals`] |
//! | the dispatch's kernel, times and record | [`complete`], [`agents`], [`kernel_index`], [`dispatch_clock`] |
//! | the records of streams | [`stream_records`] |
//! | copies and fills, if requested | [`copies`], based on [`thread_queues`]; [`copy_records`] |
//! | writing the file | [`file`], [`file_name`] |
//!
//! CUDA's kernels and copies come from CUPTI (`nvidia/activity.rs`): [`cuda_calls`] observes the API calls, [`cuda_launches`]
//! keeps them until their records arrive, and [`cuda_records`] writes these.
//!
//! The program's markers are separate: `exports/roctx.rs` and [`nvtx`] have the functions, [`markers`] passes the events of each thread to
//! the completion thread ([`thread_queues`]), and [`marker_ranges`] and [`marker_records`] make
//! records of them.
//!
//! [`session`] manages the trace of this process from its start to its end.

mod agents;
mod atomics;
pub mod calls;
mod capture;
mod clock;
mod complete;
pub mod copies;
mod copy_records;
pub mod cuda_calls;
mod cuda_launches;
mod cuda_records;
mod dispatch_clock;
mod fifo;
mod file;
mod file_name;
pub mod hip_functions;
mod in_flight;
mod kernel_index;
mod marker_domains;
pub mod marker_ranges;
mod marker_records;
pub mod markers;
pub mod nvtx;
mod packet_origins;
mod poll_flag;
mod recording;
mod session;
mod stream_records;
pub mod streams;
mod switches;
mod thread_queues;
mod wakeup;
mod watched_signals;

pub use session::{
    activities_expected, context_destroying, cuda_now, cuda_started, dispatch_time, end, finish,
    flush, frozen, in_child, pause, prepare, profiler_switched, queue_created, release, resume,
    set_recording, signal_changed, signal_changing, signal_comparing, signal_destroying,
    slots_reserved, start, start_cuda,
};
