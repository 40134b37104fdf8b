//! Hints for the processor's caches.

use std::arch::asm;

/// Begins to fetch the cache line of `value`, which the calling thread will write soon, from the caches of other processors.
#[inline(always)]
pub fn prefetch_for_write<T>(value: &T) {
    let address = std::ptr::from_ref(value);
    // SAFETY: a hint, which changes no value.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        asm!("prefetchw [{}]", in(reg) address, options(nostack, preserves_flags));
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        asm!("prfm pstl1keep, [{}]", in(reg) address, options(nostack, preserves_flags));
    }
}
