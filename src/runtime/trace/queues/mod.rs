//! Lock-free queues from the program's threads to the completion thread, and its wakeup.

pub mod atomics;
pub mod fifo;
pub mod poll_flag;
pub mod thread_queues;
pub mod wakeup;
