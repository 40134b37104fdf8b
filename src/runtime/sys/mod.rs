//! Safe functions for the operating system, libc and LLVM's host runtime. FFI.

mod backtrace;
pub mod clock;
pub mod elf_notes;
pub mod elf_sections;
pub mod env;
pub mod exit;
pub mod files;
pub mod futex;
pub mod llvm_runtime;
pub mod loaded_files;
pub mod loader;
pub mod mounts;
pub mod prefetch;
pub mod process;
pub mod thread_value;
pub mod threads;
mod unwind;
pub mod writes;

/// The instruction that jumps to a function. Its operand is the function's symbol.
#[cfg(target_arch = "x86_64")]
macro_rules! jump_instruction {
    () => {
        "jmp {}"
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! jump_instruction {
    () => {
        "b {}"
    };
}
pub(crate) use jump_instruction;
