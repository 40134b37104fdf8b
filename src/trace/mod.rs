//! The trace: every kernel dispatch and the API call that made it, with their times.

// Until the capture uses it.
#[allow(dead_code)]
pub mod fifo;
mod sync;
