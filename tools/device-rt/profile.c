// The device side of the profile runtime: the functions that instrumented kernels call, and the table from which the
// host finds their counters. Toolchains without compiler-rt for amdgcn (Debian's, several ROCm nightlies) do not have
// it. Their device links fail, or, with clang 22, produce code objects whose counters cannot be found.
//
// The build script defines PROFILE_RAW_VERSION, the raw profile version that its compiler writes.
//
// The attribute is needed for context-sensitive profiles: the compiler instruments for them at link time, when this code
// is already in the program.
#pragma clang attribute push(__attribute__((no_profile_instrument_function)), apply_to = function)
#include <gpuintrin.h>
#include <stdint.h>

#define HIDDEN __attribute__((visibility("hidden")))
// Inlined, also at -O0: the step is nearly always a constant, and a call would spill the kernel's registers.
#define CALLED __attribute__((visibility("hidden"), always_inline))
// In the code object's dynamic symbol table, which HSA searches.
#define EXPORTED __attribute__((visibility("protected"), used))

// lld defines the bounds of every section whose name is a C identifier. Weak, because a code object may not have the
// section.
#define SECTION_BOUNDS(section) \
    extern const char __start_##section[] __attribute__((weak)) HIDDEN; \
    extern const char __stop_##section[] __attribute__((weak)) HIDDEN

SECTION_BOUNDS(__llvm_prf_names);
SECTION_BOUNDS(__llvm_prf_cnts);
SECTION_BOUNDS(__llvm_prf_data);
extern const uint64_t __llvm_profile_raw_version;

#if PROFILE_RAW_VERSION == 11
SECTION_BOUNDS(__llvm_prf_ucnts);
#define TABLE_SIZE 72
#elif PROFILE_RAW_VERSION == 10
#define TABLE_SIZE 56
#else
#error "PROFILE_RAW_VERSION must be 10 or 11"
#endif

// The same order as INSTR_PROF_GPU_SECT in InstrProfData.inc.
EXPORTED const void *const __llvm_profile_sections[] = {
    __start___llvm_prf_names, __stop___llvm_prf_names,
    __start___llvm_prf_cnts,  __stop___llvm_prf_cnts,
    __start___llvm_prf_data,  __stop___llvm_prf_data,
#if PROFILE_RAW_VERSION == 11
    __start___llvm_prf_ucnts, __stop___llvm_prf_ucnts,
#endif
    &__llvm_profile_raw_version,
};
_Static_assert(sizeof __llvm_profile_sections == TABLE_SIZE, "readers identify the layout by its size");

#if PROFILE_RAW_VERSION == 10
// Compilers that write version 10 increment counters inline and call no function. This is the only undefined symbol in
// their objects. It makes the linker take the table from the archive.
EXPORTED int __llvm_profile_runtime;
#else

// The sum of `step` over the lanes of `active`. The lanes have different steps if a select is counted (clang's
// -fprofile-generate adds its condition).
static uint64_t sum_of_steps(uint64_t active, uint64_t step) {
    uint64_t sum = 0;
    for (uint64_t left = active; left != 0;) {
        uint32_t lane = __builtin_ctzg(left);
        uint64_t lanes_step = (uint64_t)__builtin_amdgcn_readlane(step >> 32, lane) << 32 |
                              (uint32_t)__builtin_amdgcn_readlane(step, lane);
        uint64_t equal = __gpu_ballot(left, step == lanes_step);
        sum += lanes_step * __builtin_popcountg(equal);
        left &= ~equal;
    }
    return sum;
}

// Counters are in global memory. With this type, the addition is one instruction and needs no check of the address.
typedef __attribute__((address_space(1))) uint64_t global_counter;

// Adds `step` for every active lane to `counter`. Adds it also to `uniform_counter` (which may be null) if all lanes of
// the wave are active: none is disabled by a branch, and the workgroup does not end within the wave.
CALLED void __llvm_profile_instrument_gpu(uint64_t *counter, uint64_t *uniform_counter, uint64_t step) {
    uint64_t active = __gpu_lane_mask();
    uint64_t sum = sum_of_steps(active, step);
    if (!__gpu_is_first_in_lane(active))
        return;
    __scoped_atomic_fetch_add((global_counter *)counter, sum, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
    if (uniform_counter && (uint32_t)__builtin_popcountg(active) == __gpu_num_lanes())
        __scoped_atomic_fetch_add((global_counter *)uniform_counter, sum, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}

// The first fields of hsa_kernel_dispatch_packet_t (hsa/hsa.h), up to the grid size.
struct dispatch_packet {
    uint16_t header, setup;
    uint16_t workgroup_size_x, workgroup_size_y, workgroup_size_z, reserved0;
    uint32_t grid_size_x, grid_size_y, grid_size_z;
};

// A section that is not loaded. It has one byte, plus one byte per copy of the function below. Its size tells readers
// of the code object whether it uses sampling (tools/code-objects/src/object.rs).
#define SAMPLING_MARK ".pushsection .devprof.sampling,\"\",@progbits\n.byte 1\n.popsection"
__asm__(SAMPLING_MARK);

// Whether this block counts. One in 2^bits blocks counts, by the block's number in the entire grid, so that grids that
// extend only in y or z are sampled, too. The grid size comes from the packet, which is the same for every code object
// version; the hidden kernel arguments are not.
CALLED int __llvm_profile_sampling_gpu(uint32_t bits) {
    __asm__ volatile(SAMPLING_MARK);
    uint32_t block = __gpu_block_id_x(), y = __gpu_block_id_y(), z = __gpu_block_id_z();
    if (y | z) {
        const struct dispatch_packet *packet = (const struct dispatch_packet *)__builtin_amdgcn_dispatch_ptr();
        uint32_t blocks_x = (packet->grid_size_x + packet->workgroup_size_x - 1) / packet->workgroup_size_x;
        uint32_t blocks_y = (packet->grid_size_y + packet->workgroup_size_y - 1) / packet->workgroup_size_y;
        block += blocks_x * (y + blocks_y * z);
    }
    uint32_t low_bits = bits < 32 ? (1u << bits) - 1 : ~0u;
    return (block & low_bits) == 0;
}
#endif
#pragma clang attribute pop
