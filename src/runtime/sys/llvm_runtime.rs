//! LLVM's host profile runtime in this program: the file name that it uses. FFI.

use std::ffi::{CStr, c_char};

// Weak references to compiler-rt's host runtime (InstrProfilingFile.c, InstrProfilingMerge.c, InstrProfilingNameVar.c).
// They are null if the program is not linked with it. Its symbols are hidden, so devprof's shared library cannot see
// the program's.
std::arch::global_asm!(
    ".pushsection .data.rel.ro.devprof_host,\"aw\",@progbits",
    ".weak __llvm_profile_get_filename",
    ".weak __llvm_profile_filename",
    ".weak lprofGetLoadModuleSignature",
    ".hidden devprof_host_profile",
    ".globl devprof_host_profile",
    ".balign 8",
    "devprof_host_profile:",
    ".quad __llvm_profile_get_filename",
    ".quad __llvm_profile_filename",
    ".quad lprofGetLoadModuleSignature",
    ".popsection",
);

#[repr(C)]
struct HostProfile {
    get_filename: Option<unsafe extern "C" fn() -> *const c_char>,
    filename: *const c_char,
    signature: Option<unsafe extern "C" fn() -> u64>,
}

unsafe extern "C" {
    static devprof_host_profile: HostProfile;
}

/// The file name of LLVM's host runtime in this program.
#[derive(Clone, Debug, Default)]
pub struct Runtime {
    /// The name that it would write to now, expanded. Empty: it would not write.
    pub name: Vec<u8>,
    /// The pattern that the compiler's command line set; empty if it set none.
    pub compiled: Vec<u8>,
    /// The value of %m.
    pub signature: u64,
}

/// LLVM's host runtime, if this file is linked with it.
pub fn find() -> Option<Runtime> {
    // SAFETY: written only by the static and the dynamic linker.
    let (get, compiled, signature) = unsafe {
        let HostProfile {
            get_filename,
            filename,
            signature,
        } = &devprof_host_profile;
        ((*get_filename)?, *filename, *signature)
    };
    // SAFETY: `get` returns null, a C string that the caller frees, or an empty literal if there is no name. The
    // variable is a constant C string. The signature is computed from the program's sections.
    unsafe {
        let text = |text: *const c_char| {
            let text = (!text.is_null()).then(|| CStr::from_ptr(text).to_bytes().to_vec());
            text.unwrap_or_default()
        };
        let current = get();
        let name = text(current);
        if !name.is_empty() {
            libc::free(current.cast_mut().cast());
        }
        Some(Runtime {
            name,
            compiled: text(compiled),
            signature: signature.map_or(0, |signature| signature()),
        })
    }
}
