//! Signals: memory, waits, completions and handlers.

pub mod changes;
pub mod completion;
pub mod copy_times;
pub mod exit;
pub mod handlers;
pub mod pool;
