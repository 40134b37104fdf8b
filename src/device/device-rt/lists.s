// Updates of a list of counters, for functions in which one inlined update after the other is too much code. The plugin
// src/device/counter-pass/compact.cpp calls these routines, __devprof_count_masks32 in waves of 32 lanes and __devprof_count_masks64 in
// waves of 64, with a calling convention of their own. A call is 12 bytes, and 4 more per mask, and leaves most registers alone.
//
//   s[40:41]  the address of the routine                                            }
//   s[42:43]  where this compute unit's copy is, as an offset from the counters     } `struct copy` in profile.c
//   s44       the offset of full waves in the copy, or 0                            }
//   s[46:55]  for conditional updates: masks of the active lanes for which a condition is true, at most five. In a wave of 32 lanes
//             s46, s48, s50, s52 and s54
//   s[56:57]  the return address
//   s58       list - return address
//
// s[46:63], s[72:79] and v[0:2] are changed. Of these, only s[48:55] are callee-saved in LLVM's calling conventions. scc is kept: clang
// takes ten times as long to compile a call that changes it, because it looks for the register's name in all classes of registers.
//
// A list has two words per counter. Counters, uniform counters and entries are at multiples of 8, so three bits are free:
//
//   counter - this entry
//     bit 0: the last entry. Which lanes count: bit 1: lanes in the mask, bit 2: active lanes outside it, both: lanes in the next
//     mask, which is the one of the following entries, too; none: all active lanes
//   uniform counter - this entry, or 0 if there is none
//     bits 0 to 2: the step, 0 to 7
//
// profile.c's `count` does the same for one counter.

.macro devprof_written wave
    // From gfx11 on, an SGPR that a vector instruction has read as a mask must not be written and then read at once.
    .if .amdgcn.gfx_generation_number >= 12
    s_wait_alu 0xfffe
    .elseif .amdgcn.gfx_generation_number == 11 && \wave == 64
    s_waitcnt_depctr 0xfffe
    .endif
.endm

.macro devprof_load_entry
    .if .amdgcn.gfx_generation_number == 9
    // With XNACK, a load that faults is executed again with all loads directly before it. Their addresses are the caller's.
    s_nop 0
    .endif
    .if .amdgcn.gfx_generation_number >= 11
    s_load_b64 s[60:61], s[58:59], 0x0
    .else
    s_load_dwordx2 s[60:61], s[58:59], 0x0
    .endif
.endm

.macro devprof_loaded
    .if .amdgcn.gfx_generation_number >= 12
    s_wait_kmcnt 0x0
    .else
    s_waitcnt lgkmcnt(0)
    .endif
.endm

// s[62:63] = s62, a distance, + s[58:59], this entry.
.macro devprof_address wave
    devprof_written \wave
    s_ashr_i32 s63, s62, 31
    devprof_written \wave
    s_add_u32 s62, s62, s58
    s_addc_u32 s63, s63, s59
    devprof_written \wave
.endm

// Adds v[0:1] at s[62:63] + v2.
.macro devprof_add
    .if .amdgcn.gfx_generation_number >= 11
    global_atomic_add_u64 v2, v[0:1], s[62:63]
    .else
    global_atomic_add_x2 v2, v[0:1], s[62:63]
    .endif
    .if .amdgcn.gfx_generation_number == 10
    // An SGPR that a memory instruction reads must not be written at once.
    s_waitcnt_depctr 0xffe3
    .endif
.endm

.macro devprof_routine wave, bits, exec, mask, saved
    .globl __devprof_count_masks\wave
    .hidden __devprof_count_masks\wave
    .type __devprof_count_masks\wave,@function
    .p2align 2
__devprof_count_masks\wave:
    .if .amdgcn.gfx_generation_number < 9
    // The plugin does not call it on these GPUs.
    s_trap 2
    .else
    s_cselect_b32 s78, 1, 0
    s_ashr_i32 s59, s58, 31
    devprof_written \wave
    s_add_u32 s58, s58, s56
    s_addc_u32 s59, s59, s57
    // The numbers of active lanes, of lanes in the mask, and of active lanes outside it.
    s_bcnt1_i32_\bits s74, \exec
    s_bcnt1_i32_\bits s75, \mask
    devprof_written \wave
    s_sub_u32 s76, s74, s75
    // The first of them adds.
    s_mov_\bits \saved, \exec
    s_ff1_i32_\bits s79, \exec
    devprof_written \wave
    s_lshl_\bits \exec, 1, s79
    v_mov_b32 v1, 0
.Ldevprof_entry\wave:
    devprof_load_entry
    devprof_loaded
    s_andn2_b32 s62, 6, s60
    s_cbranch_scc0 .Ldevprof_mask\wave
    s_bitcmp1_b32 s60, 1
    s_cselect_b32 s77, s75, s74
    s_bitcmp1_b32 s60, 2
    devprof_written \wave
    s_cselect_b32 s77, s76, s77
    devprof_written \wave
.Ldevprof_counted\wave:
    s_cmp_eq_u32 s77, 0
    s_cbranch_scc1 .Ldevprof_next\wave
    // The sum of their steps.
    s_and_b32 s62, s61, 7
    devprof_written \wave
    s_mul_i32 s62, s62, s77
    devprof_written \wave
    v_mov_b32 v0, s62
    // A full wave has its own place in the copy.
    s_cmp_eq_u32 s77, \wave
    s_cselect_b32 s62, s44, 0
    devprof_written \wave
    v_mov_b32 v2, s62
    s_and_b32 s62, s60, -8
    devprof_address \wave
    s_add_u32 s62, s62, s42
    s_addc_u32 s63, s63, s43
    devprof_written \wave
    devprof_add
    // If there is no copy, a full wave adds to the uniform counter, too.
    s_cmp_eq_u32 s44, 0
    s_cbranch_scc1 .Ldevprof_uniform\wave
.Ldevprof_next\wave:
    s_bitcmp1_b32 s60, 0
    s_cbranch_scc1 .Ldevprof_end\wave
    s_add_u32 s58, s58, 8
    s_addc_u32 s59, s59, 0
    devprof_written \wave
    s_branch .Ldevprof_entry\wave
.Ldevprof_mask\wave:
    s_mov_b64 s[46:47], s[48:49]
    s_mov_b64 s[48:49], s[50:51]
    s_mov_b64 s[50:51], s[52:53]
    s_mov_b64 s[52:53], s[54:55]
    devprof_written \wave
    s_bcnt1_i32_\bits s75, \mask
    devprof_written \wave
    s_sub_u32 s76, s74, s75
    s_mov_b32 s77, s75
    devprof_written \wave
    s_branch .Ldevprof_counted\wave
.Ldevprof_uniform\wave:
    s_cmp_lg_u32 s77, \wave
    s_cbranch_scc1 .Ldevprof_next\wave
    s_and_b32 s62, s61, -8
    s_cbranch_scc0 .Ldevprof_next\wave
    devprof_address \wave
    devprof_add
    s_branch .Ldevprof_next\wave
.Ldevprof_end\wave:
    s_mov_\bits \exec, \saved
    s_cmp_lg_u32 s78, 0
    s_setpc_b64 s[56:57]
    .endif
    .size __devprof_count_masks\wave, .-__devprof_count_masks\wave
.endm

    devprof_routine 32, b32, exec_lo, s46, s72
    devprof_routine 64, b64, exec, s[46:47], s[72:73]
