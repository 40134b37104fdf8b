//! What the exported functions need in assembly, for each kind of host processor: they jump, so that their arguments stay where
//! they are, whatever the types.

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!(
    "devprof's exported functions need assembly for this processor: src/runtime/exports/machine.rs"
);

/// The body of a naked function that jumps to a function.
macro_rules! jump {
    ($function:path) => {
        std::arch::naked_asm!($crate::sys::jump_instruction!(), sym $function)
    };
}

/// The body of a naked function that jumps to the function whose address is the word `$offset` bytes behind the start of a static.
/// The word's address is then in the register that [`jump_to_resolved`] expects it in.
#[cfg(target_arch = "x86_64")]
macro_rules! jump_to_target {
    ($table:path, $offset:expr) => {
        std::arch::naked_asm!(
            "lea r11, [rip + {table} + {offset}]",
            "jmp qword ptr [r11]",
            table = sym $table,
            offset = const $offset,
        )
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! jump_to_target {
    ($table:path, $offset:expr) => {
        std::arch::naked_asm!(
            "adrp x16, {table} + {offset}",
            "add x16, x16, :lo12:{table} + {offset}",
            // Acquire: what was written before the target is read after it.
            "ldar x17, [x16]",
            "br x17",
            table = sym $table,
            offset = const $offset,
        )
    };
}
pub(super) use jump;
pub(crate) use jump_to_target;

/// The body of a naked function that is the first target of [`jump_to_target`]: calls the function whose address is `$resolve` bytes
/// behind that word, with the address of the word, and jumps to the address that it returns. All registers that can contain
/// arguments are preserved: on x86-64 also the number of those in vector registers, on ARM the address of a structure that the
/// function returns (x8).
#[cfg(target_arch = "x86_64")]
macro_rules! jump_to_resolved {
    ($resolve:expr) => {
        std::arch::naked_asm!(
            "push rdi",
            "push rsi",
            "push rdx",
            "push rcx",
            "push r8",
            "push r9",
            "push rax",
            "sub rsp, 128",
            "movups [rsp], xmm0",
            "movups [rsp + 16], xmm1",
            "movups [rsp + 32], xmm2",
            "movups [rsp + 48], xmm3",
            "movups [rsp + 64], xmm4",
            "movups [rsp + 80], xmm5",
            "movups [rsp + 96], xmm6",
            "movups [rsp + 112], xmm7",
            "mov rdi, r11",
            "call qword ptr [rdi + {resolve}]",
            "mov r11, rax",
            "movups xmm0, [rsp]",
            "movups xmm1, [rsp + 16]",
            "movups xmm2, [rsp + 32]",
            "movups xmm3, [rsp + 48]",
            "movups xmm4, [rsp + 64]",
            "movups xmm5, [rsp + 80]",
            "movups xmm6, [rsp + 96]",
            "movups xmm7, [rsp + 112]",
            "add rsp, 128",
            "pop rax",
            "pop r9",
            "pop r8",
            "pop rcx",
            "pop rdx",
            "pop rsi",
            "pop rdi",
            "jmp r11",
            resolve = const $resolve,
        )
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! jump_to_resolved {
    ($resolve:expr) => {
        std::arch::naked_asm!(
            "stp x29, x30, [sp, #-224]!",
            "mov x29, sp",
            "stp x0, x1, [sp, #16]",
            "stp x2, x3, [sp, #32]",
            "stp x4, x5, [sp, #48]",
            "stp x6, x7, [sp, #64]",
            "str x8, [sp, #80]",
            "stp q0, q1, [sp, #96]",
            "stp q2, q3, [sp, #128]",
            "stp q4, q5, [sp, #160]",
            "stp q6, q7, [sp, #192]",
            "mov x0, x16",
            "ldr x17, [x16, #{resolve}]",
            "blr x17",
            "mov x17, x0",
            "ldp x0, x1, [sp, #16]",
            "ldp x2, x3, [sp, #32]",
            "ldp x4, x5, [sp, #48]",
            "ldp x6, x7, [sp, #64]",
            "ldr x8, [sp, #80]",
            "ldp q0, q1, [sp, #96]",
            "ldp q2, q3, [sp, #128]",
            "ldp q4, q5, [sp, #160]",
            "ldp q6, q7, [sp, #192]",
            "ldp x29, x30, [sp], #224",
            "br x17",
            resolve = const $resolve,
        )
    };
}
pub(super) use jump_to_resolved;

/// The body of a naked function with the arguments of `dlsym`: calls `$choose` with them, and jumps to the function that it
/// returns, with the same arguments and the return address as third one. For that function, this one was never called: its return
/// address is the caller's.
#[cfg(target_arch = "x86_64")]
macro_rules! jump_with_caller {
    ($choose:path) => {
        std::arch::naked_asm!(
            "push rdi",
            "push rsi",
            "sub rsp, 8",
            "call {}",
            "add rsp, 8",
            "pop rsi",
            "pop rdi",
            // The return address.
            "mov rdx, [rsp]",
            "jmp rax",
            sym $choose,
        )
    };
}
#[cfg(target_arch = "aarch64")]
macro_rules! jump_with_caller {
    ($choose:path) => {
        std::arch::naked_asm!(
            "stp x29, x30, [sp, #-32]!",
            "mov x29, sp",
            "stp x0, x1, [sp, #16]",
            "bl {}",
            "mov x17, x0",
            "ldp x0, x1, [sp, #16]",
            "ldp x29, x30, [sp], #32",
            // The return address.
            "mov x2, x30",
            "br x17",
            sym $choose,
        )
    };
}
pub(super) use jump_with_caller;
