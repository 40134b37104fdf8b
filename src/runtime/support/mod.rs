//! What every layer needs: memory, locks, settings, messages, a guard against panics.

#![forbid(unsafe_code)]

pub mod alloc;
pub mod diagnostics;
pub mod environment;
pub mod features;
pub mod gate;
pub mod panic_guard;
pub mod registry;
pub mod run_log;
pub mod settings;
pub mod sync;
pub mod unlimited;
pub mod wait_limit;
