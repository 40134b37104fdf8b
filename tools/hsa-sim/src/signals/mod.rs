//! Signals: memory, waits, completions and handlers.

pub mod changes;
pub mod completion;
pub mod handlers;
pub mod pool;
