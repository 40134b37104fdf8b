// The device side of the profile runtime for CUDA: the functions that instrumented device code calls. `devprof flags
// --cuda` includes this file into every CUDA source (-include), for programs with and without relocatable device code.
//
// A library would not do. Without relocatable device code, nothing is linked on the device: a bitcode file could only be
// linked after optimization (-mlink-builtin-bitcode-postopt), because nothing refers to it before, and its functions
// and libdevice's would not be inlined.
//
// clang's instrumentation calls functions by name and uses the definitions of this file if their names match exactly, so
// they are inlined. They are internal: each translation unit has its own, and ptxas removes what was inlined.
#if defined(__CUDA__) && defined(__CUDA_ARCH__) && !defined(DEVPROF_CUDA_H)
#define DEVPROF_CUDA_H
// Functions in system headers are not instrumented and have no coverage mapping.
#pragma clang system_header

#if __CUDA_ARCH__ < 700
#error "devprof: instrumented device code needs sm_70 or newer (--offload-arch): older GPUs cannot compare lanes"
#endif
#if __clang_major__ < 23
#error "devprof: this clang cannot instrument CUDA device code for devprof: clang 23 or newer can"
#endif

#define DEVPROF_FUNCTION static __attribute__((device, no_profile_instrument_function))
#define DEVPROF_INLINE DEVPROF_FUNCTION __attribute__((always_inline))
#include "counting.h"

// `used`: when clang removes unused functions, nothing calls these yet.
#define DEVPROF_CALLED DEVPROF_INLINE __attribute__((used))
DEVPROF_CALLED void devprof_instrument(devprof_u64 *, devprof_u64 *, devprof_u64) __asm__("__llvm_profile_instrument_gpu");
DEVPROF_CALLED void devprof_instrument_sums(devprof_u64 *, devprof_u64 *, devprof_u64, devprof_u64)
    __asm__("__devprof_instrument_sums");
DEVPROF_CALLED void devprof_instrument_block(devprof_u64 *, devprof_u64 *, devprof_u64) __asm__("__devprof_instrument_block");
DEVPROF_CALLED int devprof_sampling(devprof_u32) __asm__("__llvm_profile_sampling_gpu");

// Counters are in global memory. With this type, the addition is one instruction and needs no check of the address.
typedef __attribute__((address_space(1))) devprof_u64 devprof_global_counter;

DEVPROF_INLINE void devprof_add(devprof_u64 address, devprof_u64 sum) {
    __scoped_atomic_fetch_add((devprof_global_counter *)address, sum, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}

// One per module. Not in constant memory, of which a program may need all 64 KiB. It is only weak if files of the program are
// linked on the device: counter-pass/coverage.cpp knows it from this.
#ifdef __CLANG_RDC__
__attribute__((weak))
#endif
__attribute__((device)) struct devprof_counter_copies devprof_copies __asm__("__devprof_counter_copies");

// The host writes the variable before a kernel can run, so it is loaded through the read-only cache, once per function
// (ld.global.nc).
DEVPROF_INLINE struct devprof_counter_copies devprof_load_copies() {
    struct devprof_counter_copies copies;
    copies.offset = __nvvm_ldg_ul(&devprof_copies.offset);
    copies.stride = __nvvm_ldg_ui(&devprof_copies.stride);
    copies.full = __nvvm_ldg_ui(&devprof_copies.full);
    copies.mask = __nvvm_ldg_ui(&devprof_copies.mask);
    copies.last = __nvvm_ldg_ui(&devprof_copies.last);
    return copies;
}

// The copy of the counters for this multiprocessor: what to add to a counter's address. The driver does not say how high the
// number of a multiprocessor can be.
DEVPROF_INLINE devprof_u64 devprof_copy(struct devprof_counter_copies copies) {
    devprof_u32 unit = __nvvm_read_ptx_sreg_smid() & copies.mask;
    unit = unit < copies.last ? unit : copies.last;
    return copies.offset + unit * copies.stride;
}

// Adds `step` for every active lane to the lane's `counter`: to a copy, or, if there are no copies, to the counter itself.
// Without copies, full warps add to `uniform_counter` (which may be null), too. A warp is full if all of its lanes count
// here: none is disabled by a branch, and the block does not end within the warp.
//
// Nearly always, all lanes have the same counter and the same step. They have different counters if ptxas joins the code
// of different branches, and different steps if a condition is added (clang's counters of selects).
DEVPROF_CALLED void devprof_instrument(devprof_u64 *counter, devprof_u64 *uniform_counter, devprof_u64 step) {
    devprof_u32 active = __nvvm_activemask(), same_counter = active, same = active;
    int is_same_counter, is_same_step = 1;
    // The counters of a module differ in the lower half of their addresses.
    __nvvm_match_all_sync_i32p(active, (devprof_u32)(devprof_u64)counter, &is_same_counter);
    if (!__builtin_constant_p(step))
        __nvvm_match_all_sync_i64p(active, step, &is_same_step);
    if (!is_same_counter || !is_same_step) {
        same_counter = __nvvm_match_any_sync_i64(active, (devprof_u64)counter);
        same = same_counter & __nvvm_match_any_sync_i64(active, step);
    }
    // The first lane of each group of equal lanes adds for its group.
    if ((same & __nvvm_read_ptx_sreg_lanemask_lt()) == 0) {
        devprof_u64 sum = step * __builtin_popcount(same);
        int is_full = same_counter == ~0u;
        struct devprof_counter_copies copies = devprof_load_copies();
        devprof_u64 copy = devprof_copy(copies);
        devprof_add((devprof_u64)counter + copy + (is_full ? copies.full : 0), sum);
        if (is_full && copies.full == 0 && uniform_counter)
            devprof_add((devprof_u64)uniform_counter, sum);
    }
}

// Adds to a counter what full and partial warps have counted.
DEVPROF_INLINE void devprof_add_sums(devprof_u64 *counter, devprof_u64 *uniform_counter, devprof_u64 partial, devprof_u64 full) {
    struct devprof_counter_copies copies = devprof_load_copies();
    devprof_u64 copy = devprof_copy(copies);
    if (partial)
        devprof_add((devprof_u64)counter + copy, partial);
    if (full) {
        devprof_add((devprof_u64)counter + copy + copies.full, full);
        if (copies.full == 0 && uniform_counter)
            devprof_add((devprof_u64)uniform_counter, full);
    }
}

// Adds the sums of updates that the pass of src/device/counter-pass moved out of a loop. Each active lane has two: `all` of its
// updates, and `full` of those in full warps. The first lane of each group with equal counters,
// or, if the sums are large, with equal counters and sums, adds for the group.
DEVPROF_CALLED void devprof_instrument_sums(devprof_u64 *counter, devprof_u64 *uniform_counter, devprof_u64 all,
                                            devprof_u64 full) {
    // The counters of a module differ in the lower half of their addresses.
    devprof_u32 same = __nvvm_match_any_sync_i32(__nvvm_activemask(), (devprof_u32)(devprof_u64)counter);
    devprof_u64 partial = all - full;
#if __CUDA_ARCH__ >= 800
    // The instruction adds 32 bits. The sum of 32 values of 27 bits does not overflow.
    if (__nvvm_vote_all_sync(same, all >> 27 == 0)) {
        full = (devprof_u32)__nvvm_redux_sync_add(full, same);
        partial = (devprof_u32)__nvvm_redux_sync_add(partial, same);
    } else
#endif
    {
        same &= __nvvm_match_any_sync_i64(same, full);
        same &= __nvvm_match_any_sync_i64(same, partial);
        full *= __builtin_popcount(same);
        partial *= __builtin_popcount(same);
    }
    if ((same & __nvvm_read_ptx_sreg_lanemask_lt()) == 0)
        devprof_add_sums(counter, uniform_counter, partial, full);
}

// For updates that all threads of a block make, where a kernel begins: the block's first thread adds for all.
DEVPROF_CALLED void devprof_instrument_block(devprof_u64 *counter, devprof_u64 *uniform_counter, devprof_u64 step) {
    if (__nvvm_read_ptx_sreg_tid_x() | __nvvm_read_ptx_sreg_tid_y() | __nvvm_read_ptx_sreg_tid_z())
        return;
    devprof_u32 threads = __nvvm_read_ptx_sreg_ntid_x() * __nvvm_read_ptx_sreg_ntid_y() * __nvvm_read_ptx_sreg_ntid_z();
    devprof_u32 partial = threads % 32;
    devprof_add_sums(counter, uniform_counter, partial * step, (threads - partial) * step);
}

#ifdef DEVPROF_LISTS
// With the macro DEVPROF_LISTS: updates of a list, for kernels in which one inlined update after the other is too much code. The plugin
// src/device/counter-pass/compact.cpp calls it. The active lanes of a warp have the same list, unless ptxas joins the code of different
// branches. They divide its counters among them.
struct devprof_listed {
    devprof_u64 *counter, *uniform_counter, step;
};
DEVPROF_FUNCTION __attribute__((noinline, used)) void devprof_instrument_list(const struct devprof_listed *, devprof_u32)
    __asm__("__devprof_instrument_list");
DEVPROF_FUNCTION void devprof_instrument_list(const struct devprof_listed *list, devprof_u32 length) {
    devprof_u32 lanes = __nvvm_match_any_sync_i64(__nvvm_activemask(), (devprof_u64)list);
    devprof_u32 number = __builtin_popcount(lanes), full = lanes == ~0u ? number : 0;
    for (devprof_u32 n = __builtin_popcount(lanes & __nvvm_read_ptx_sreg_lanemask_lt()); n < length; n += number) {
        struct devprof_listed to = list[n];
        devprof_add_sums(to.counter, to.uniform_counter, (number - full) * to.step, full * to.step);
    }
}
#endif

// Whether this block counts. By default every block does, whatever clang's --offload-pgo-sampling is. With the macro
// DEVPROF_SAMPLING, one in 2^bits blocks does. A cubin does not show whether this function was called, so a variable shows
// which of the two it is (src/formats/code-objects/src/cuda/profile.rs).
#ifdef DEVPROF_SAMPLING
__attribute__((device, weak)) char devprof_sampling_marker __asm__("__devprof_sampling");
DEVPROF_CALLED int devprof_sampling(devprof_u32 bits) {
    devprof_u32 row = __nvvm_read_ptx_sreg_ctaid_y() + __nvvm_read_ptx_sreg_nctaid_y() * __nvvm_read_ptx_sreg_ctaid_z();
    return devprof_is_sampled(__nvvm_read_ptx_sreg_ctaid_x() + __nvvm_read_ptx_sreg_nctaid_x() * row, bits);
}
#else
__attribute__((device, weak)) char devprof_exact_marker __asm__("__devprof_exact");
DEVPROF_CALLED int devprof_sampling(devprof_u32) { return 1; }
#endif

// clang makes a constructor that registers the counters of a translation unit. CUDA runs no constructors, and devprof
// finds the counters in the image's symbol table, so the constructor calls this function in place of clang's own
// (which clang then renames). Nothing refers to clang's function any more, and the optimizer removes it, before ptxas
// reports the functions that it would call as undefined.
DEVPROF_FUNCTION __attribute__((used)) void devprof_register() __asm__("__llvm_profile_register_functions");
#ifdef __OPTIMIZE__
DEVPROF_FUNCTION void devprof_register() {}
#else
// At -O0, LLVM only removes unused functions from a module that uses an intrinsic of coroutines. This one is address
// arithmetic.
__attribute__((device)) void *devprof_coroutine(void *, int, bool) __asm__("llvm.coro.promise");
DEVPROF_FUNCTION void devprof_register() { devprof_coroutine(nullptr, 8, false); }
#endif

#endif
