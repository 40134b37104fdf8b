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
pub mod process;
pub mod thread_value;
pub mod threads;
mod unwind;
pub mod writes;
