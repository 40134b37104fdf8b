//! Kernels of instrumented CUDA code that need too many registers for the largest blocks.

use crate::names::demangled;
use crate::readable::{first_names, plural};
use code_objects::{CodeObject, Kernel};

/// The largest block, threads.
const MAX_THREADS: u32 = 1024;
/// The registers of a block ("Technical Specifications per Compute Capability" in the CUDA C++ Programming Guide; all GPUs
/// since sm_70).
const OF_BLOCK: u32 = 65536;
/// Registers are allocated in groups of this size, per thread.
const GROUP: u32 = 8;

/// The largest number of registers per thread with which a block of so many threads can be launched.
pub fn for_threads(threads: u32) -> u32 {
    OF_BLOCK / threads.max(1) / GROUP * GROUP
}

/// Whether a kernel without a limit for its blocks cannot be launched with the largest ones. (With a limit, ptxas uses few
/// enough registers.)
fn is_too_large(kernel: &Kernel) -> bool {
    kernel.workgroup == MAX_THREADS && kernel.vgprs > for_threads(MAX_THREADS)
}

/// Instrumentation adds registers, so a launch that works without it may fail.
pub fn warning(object: &CodeObject) -> Option<String> {
    if !object.is_cuda() || object.profile.is_none() {
        return None;
    }
    let kernels = object.kernels.iter();
    let large: Vec<&Kernel> = kernels.filter(|own| is_too_large(own)).collect();
    let name = |kernel: &&Kernel| format!("{} ({})", demangled(&kernel.name), kernel.vgprs);
    (!large.is_empty()).then(|| {
        format!(
            "{} with more than {} registers per thread, which cannot be launched with {MAX_THREADS} threads per block: {}; if the program does that, compile with `devprof flags --cuda --max-threads {MAX_THREADS}`, or add __launch_bounds__",
            plural(large.len(), "instrumented kernel"),
            for_threads(MAX_THREADS),
            first_names(large.iter().map(name)),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_65536_registers() {
        let numbers = [1024, 1000, 768, 512, 257, 1].map(for_threads);
        assert_eq!(numbers, [64, 64, 80, 128, 248, 65536]);
        let kernel = |vgprs, workgroup| Kernel {
            vgprs,
            workgroup,
            ..Kernel::default()
        };
        assert!(is_too_large(&kernel(65, 1024)));
        assert!(!is_too_large(&kernel(64, 1024)));
        assert!(!is_too_large(&kernel(255, 128)));
    }
}
