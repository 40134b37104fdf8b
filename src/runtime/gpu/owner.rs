//! The process that may use GPU runtimes.

use crate::support::settings::settings;
use std::sync::atomic::{AtomicU32, Ordering};

/// The process that loaded devprof, or a child that was forked before HSA was initialized. 0 in other children.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Sets the process, 0 for none. Only the process's lifecycle may do this.
pub fn set(process: u32) {
    OWNER.store(process, Ordering::Relaxed);
}

pub fn get() -> u32 {
    OWNER.load(Ordering::Relaxed)
}

/// Whether this process may use GPU runtimes.
pub fn is_owner() -> bool {
    get() == std::process::id() && !settings().disabled
}
