//! Signals: their memory, waits for their changes, and handlers that run when they change.

pub mod changes;
pub mod completion;
pub mod handlers;
pub mod pool;
