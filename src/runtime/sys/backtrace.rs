//! What a panic in the archive prints in place of a backtrace.
//!
//! The standard library finds the names and lines of a backtrace in debug information. The code for that would be a third
//! of the archive, which is linked into every program. tools/build-runtime replaces the function that prints backtraces,
//! `<DisplayBacktrace as Display>::fmt`, by [`no_backtrace`]. The shared library prints backtraces.

use std::ffi::c_void;
use std::fmt;

/// Has the signature of the function that it replaces; `_backtrace` is a private type of the standard library.
fn no_backtrace(_backtrace: &c_void, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str("stack backtrace: not in libdevprof.a; to get one, load libdevprof.so instead\n")
}

// Hidden: `no_mangle` would export it from the shared library, where the linker drops it.
std::arch::global_asm!(
    ".pushsection .text.devprof_no_backtrace,\"ax\",@progbits",
    ".globl devprof_no_backtrace",
    ".hidden devprof_no_backtrace",
    ".type devprof_no_backtrace,@function",
    "devprof_no_backtrace:",
    super::jump_instruction!(),
    ".popsection",
    sym no_backtrace,
);
