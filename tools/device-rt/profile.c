// The device side of the profile runtime: what instrumented kernels call, and the table by which the host finds
// their counters. Toolchains without compiler-rt's amdgcn build (Debian's, several ROCm nightlies) ship none of it,
// and their device links fail or, with clang 22, leave code objects whose counters nobody can find.
//
// The build script passes PROFILE_RAW_VERSION, the raw profile version that its compiler writes.
// Nothing in here counts itself: context-sensitive profiles instrument at link time, when this is in the program.
#pragma clang attribute push(__attribute__((no_profile_instrument_function)), apply_to = function)
#include <gpuintrin.h>
#include <stdint.h>

#define HIDDEN __attribute__((visibility("hidden")))
// Inlined, at -O0 too: the step is a constant almost everywhere, and a call from a kernel spills its registers.
#define CALLED __attribute__((visibility("hidden"), always_inline))
// In the code object's dynamic symbols, where HSA looks names up.
#define EXPORTED __attribute__((visibility("protected"), used))

// lld defines the bounds of every section whose name is a C identifier. Weak: a code object may lack a section.
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
#error "the tables of raw profile versions 10 and 11 are known"
#endif

// The order is that of INSTR_PROF_GPU_SECT in InstrProfData.inc.
EXPORTED const void *const __llvm_profile_sections[] = {
    __start___llvm_prf_names, __stop___llvm_prf_names,
    __start___llvm_prf_cnts,  __stop___llvm_prf_cnts,
    __start___llvm_prf_data,  __stop___llvm_prf_data,
#if PROFILE_RAW_VERSION == 11
    __start___llvm_prf_ucnts, __stop___llvm_prf_ucnts,
#endif
    &__llvm_profile_raw_version,
};
_Static_assert(sizeof __llvm_profile_sections == TABLE_SIZE, "readers tell the layouts apart by their size");

#if PROFILE_RAW_VERSION == 10
// Compilers of version 10 increment inline and call nothing; the one name that their objects leave undefined is
// this, which pulls the table out of the archive.
EXPORTED int __llvm_profile_runtime;
#else

// The sum of `step` over the lanes of `active`. Steps differ between lanes where a select is counted
// (clang's -fprofile-generate adds its condition), so one lane's step must not stand for all.
static uint64_t sum_of_steps(uint64_t active, uint64_t step) {
    uint64_t sum = 0;
    for (uint64_t left = active; left != 0;) {
        uint32_t lane = __builtin_ctzg(left);
        uint64_t lanes_step = (uint64_t)__builtin_amdgcn_readlane(step >> 32, lane) << 32 |
                              (uint32_t)__builtin_amdgcn_readlane(step, lane);
        uint64_t same = __gpu_ballot(left, step == lanes_step);
        sum += lanes_step * __builtin_popcountg(same);
        left &= ~same;
    }
    return sum;
}

// Counters lie in global memory; said in the type, the addition is one instruction without a test of the address.
typedef __attribute__((address_space(1))) uint64_t global_counter;

// Adds `step` for every active lane to `counter`, and to `uniform_counter` (which may be null) where no lane of the
// wave is missing, neither by a branch nor because the workgroup ends within the wave.
CALLED void __llvm_profile_instrument_gpu(uint64_t *counter, uint64_t *uniform_counter, uint64_t step) {
    uint64_t active = __gpu_lane_mask();
    uint64_t sum = sum_of_steps(active, step);
    if (!__gpu_is_first_in_lane(active))
        return;
    __scoped_atomic_fetch_add((global_counter *)counter, sum, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
    if (uniform_counter && (uint32_t)__builtin_popcountg(active) == __gpu_num_lanes())
        __scoped_atomic_fetch_add((global_counter *)uniform_counter, sum, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}

// The part of an AQL kernel dispatch packet that gives the grid; hsa_kernel_dispatch_packet_t in hsa/hsa.h.
struct dispatch_packet {
    uint16_t header, setup;
    uint16_t workgroup_size_x, workgroup_size_y, workgroup_size_z, reserved0;
    uint32_t grid_size_x, grid_size_y, grid_size_z;
};

// A section that is not loaded tells readers of the code object whether anything is sampled: it has one byte, and one
// for each copy of the function below (tools/code-objects/src/object.rs).
#define SAMPLING_MARK ".pushsection .devprof.sampling,\"\",@progbits\n.byte 1\n.popsection"
__asm__(SAMPLING_MARK);

// Whether this block is one of those that count: one in 2^bits, by the block's number in the whole grid, so that
// grids which extend in y or z only are sampled too. The packet has the grid's size in every code object version;
// the hidden kernel arguments moved between versions.
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
