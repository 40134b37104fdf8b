//! HSA's system clock.

use super::api::failed;
use super::query;
use super::tables::saved;
use crate::gpu::runtime::Error;
use hsa_abi::{HSA_SYSTEM_INFO_TIMESTAMP, HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, Status};

/// `HSA_SYSTEM_INFO_TIMESTAMP`; 0 if HSA is not initialized.
pub fn system_time() -> u64 {
    let mut ticks = 0u64;
    if let Some(saved) = saved() {
        // SAFETY: the attribute is a u64; a runtime that is not initialized does not write it.
        unsafe {
            (saved.core.hsa_system_get_info)(HSA_SYSTEM_INFO_TIMESTAMP, (&raw mut ticks).cast());
        }
    }
    ticks
}

/// Ticks per second of the system clock.
pub fn clock_frequency() -> Result<u64, Error> {
    const CALL: &str = "hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY)";
    let saved = saved().ok_or_else(|| failed(CALL, Status::NOT_INITIALIZED))?;
    // SAFETY: the attribute is a u64.
    let frequency = query::info(CALL, |to| unsafe {
        (saved.core.hsa_system_get_info)(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, to)
    })?;
    match frequency {
        0 => Err(failed(CALL, Status::ERROR)),
        frequency => Ok(frequency),
    }
}
