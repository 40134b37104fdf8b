//! Functions that overwrite their return address, which `devprof inspect` and `devprof doctor` report.

use crate::names::demangled;
use crate::readable::{first_names, plural};
use code_objects::returns;

/// LLVM's option against a defect (llvm/llvm-project#224205): in device functions over 128 KiB that call no function, long
/// branches overwrite the return address. Instrumentation makes functions that large. The option reserves no registers for
/// long branches before registers are allocated; LLVM then takes free ones at each branch.
pub const LONG_BRANCHES: &str = "-amdgpu-long-branch-factor=0";

/// How to compile such functions correctly.
pub fn fix() -> String {
    format!(
        "compile and link with the flags of `devprof flags`, or with -Xarch_device -mllvm={LONG_BRANCHES} -Xoffload-linker -mllvm={LONG_BRANCHES}"
    )
}

/// The problem of a code object in which these functions overwrite their return address.
pub fn problem(functions: &[String]) -> Option<String> {
    (!functions.is_empty()).then(|| {
        format!(
            "the compiler made {} that cannot return (llvm/llvm-project#224205): a long branch overwrites the return address in {}",
            plural(functions.len(), "device function"),
            first_names(functions.iter().map(|name| demangled(name)))
        )
    })
}

/// The functions of a code object that overwrite their return address. If its symbols are damaged, none are known.
pub fn overwritten(bytes: Option<&code_objects::Bytes>) -> Vec<String> {
    bytes
        .and_then(|bytes| returns::overwritten(bytes).ok())
        .unwrap_or_default()
}
