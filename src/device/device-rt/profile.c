// The device side of the profile runtime for amdgcn: the functions that instrumented kernels call, and the table from
// which the host finds their counters. cuda.h is the same for CUDA. Toolchains without compiler-rt for amdgcn (Debian's,
// several ROCm nightlies) do not have it. Their device links fail, or, with clang 22, produce code objects whose counters
// cannot be found.
//
// The build script defines PROFILE_RAW_VERSION, the raw profile version that its compiler writes.
//
// The attribute is needed for context-sensitive profiles: the compiler instruments for them at link time, when this code
// is already in the program.
#pragma clang attribute push(__attribute__((no_profile_instrument_function)), apply_to = function)
#include <gpuintrin.h>
#include <stdint.h>

#define DEVPROF_INLINE static inline __attribute__((always_inline))
#include "counting.h"

#define HIDDEN __attribute__((visibility("hidden")))
// Depends on which lanes are active, so the compiler must not move calls. By default, all functions and assembly statements
// are convergent. The build script changes that (-fno-convergent-functions), so that find_copy is executed only once.
#define CONVERGENT __attribute__((convergent))
// Inlined, also at -O0: the step is nearly always a constant, and a call would spill the kernel's registers.
#define CALLED __attribute__((visibility("hidden"), always_inline)) CONVERGENT
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

// Where the waves of this code object add to counters. Only the host writes it, before the first kernel runs. If the host
// does not know it, all fields are 0: there are no copies.
EXPORTED struct devprof_counter_copies __devprof_counter_copies;

// The copy to which a wave adds.
struct copy {
    uint64_t offset; // from a counter to where partial waves of this compute unit add
    uint32_t full;   // see devprof_counter_copies
};

// Reads the variable, and selects the copy for the wave's compute unit. Each unit has its own number. It consists of fields
// of hardware registers (see AMD's ISA guides, and amd_device_functions.h of HIP), from the lowest bit:
//
//   gfx1250            SA, WGP (4 bits), the number of the workgroup in its row, see below
//   gfx10 and later    CU, SA, WGP (2 bits), SE + 4 × WGP (upper 2 bits). All units of a GPU with 4 WGPs per SA, or with 4
//                      SEs, have different numbers: 6 bits for the 64 units of a gfx1201, 7 for the 96 of a gfx1100
//   gfx940 and later   CU (4 bits), SE (2 bits), XCC: 9 bits for the 304 units of a gfx942, 6 for a partition with one XCC
//   other gfx9         CU (4 bits), SE: 7 bits for the 104 units of a gfx90a
//   older              0
//
// The host's mask decides which bits are used (src/runtime/amd/device_memory.rs, src/runtime/gpu/copy_layout). If copies are shared,
// it drops the lowest ones, so units of different XCCs share a copy last. The counts are right with any mask.
//
// Waves of gfx1250 can only read their SE and XCC with a message (MSG_RTN_GET_SE_AID_ID), which is far too slow. Consecutive
// workgroups are on different XCCs, so the number of the workgroup is nearly as good.
//
// This is assembly code for two reasons. The archive is not specific to a GPU, and the device link's assembler selects the
// instructions. And the compiler executes it once per function, because it depends on nothing that changes in a function.
// A read of memory would be repeated after each atomic operation.
DEVPROF_INLINE struct copy find_copy(void) {
    uint32_t fields __attribute__((ext_vector_type(4))), mask, unit, field;
    // On gfx9, a load that faults is executed again, with all loads directly before and after it. One in front of this statement
    // must not find its address overwritten by the first load here, and the compiler does not look into the statement.
    __asm__(".if .amdgcn.gfx_generation_number == 9\n"
            "s_nop 0\n"
            ".endif\n"
            ".if .amdgcn.gfx_generation_number >= 11\n"
            "s_load_b128 %0, %4, 0x0\n"
            "s_load_b32 %1, %4, 0x10\n"
            ".else\n"
            "s_load_dwordx4 %0, %4, 0x0\n"
            ".if .amdgcn.gfx_generation_number >= 9\n"
            "s_load_dword %1, %4, 0x10\n"
            ".else\n"
            "s_mov_b32 %1, 0\n"
            ".endif\n"
            ".endif\n"

            ".if .amdgcn.gfx_generation_number == 12 && .amdgcn.gfx_generation_minor >= 5\n"
            "s_getreg_b32 %3, hwreg(23, 10, 4)\n" // HW_ID1: WGP_ID
            "s_lshl4_add_u32 %2, ttmp9, %3\n"     // the workgroup's number in dimension x
            "s_getreg_b32 %3, hwreg(23, 16, 1)\n" // SA_ID
            "s_lshl1_add_u32 %2, %2, %3\n"
            ".elseif .amdgcn.gfx_generation_number >= 10\n"
            "s_getreg_b32 %2, hwreg(23, 12, 2)\n" // HW_ID1: WGP_ID, upper bits
            "s_getreg_b32 %3, hwreg(23, 18, 3)\n" // SE_ID
            "s_lshl2_add_u32 %2, %2, %3\n"
            "s_getreg_b32 %3, hwreg(23, 10, 2)\n" // WGP_ID, lower bits
            "s_lshl2_add_u32 %2, %2, %3\n"
            "s_getreg_b32 %3, hwreg(23, 16, 1)\n" // SA_ID
            "s_lshl1_add_u32 %2, %2, %3\n"
            "s_getreg_b32 %3, hwreg(23, 8, 1)\n" // the bit of SIMD_ID that is the CU
            "s_lshl1_add_u32 %2, %2, %3\n"
            ".elseif .amdgcn.gfx_generation_number == 9\n"
            ".if .amdgcn.gfx_generation_minor >= 4\n"
            "s_getreg_b32 %2, hwreg(20, 0, 4)\n" // XCC_ID
            "s_getreg_b32 %3, hwreg(4, 13, 2)\n" // HW_ID: SE_ID
            "s_lshl2_add_u32 %2, %2, %3\n"
            ".else\n"
            "s_getreg_b32 %2, hwreg(4, 13, 3)\n"
            ".endif\n"
            "s_getreg_b32 %3, hwreg(4, 8, 4)\n" // CU_ID
            "s_lshl4_add_u32 %2, %2, %3\n"
            ".else\n"
            "s_mov_b32 %2, 0\n"
            ".endif\n"

            ".if .amdgcn.gfx_generation_number >= 12\n"
            "s_wait_kmcnt 0x0\n"
            ".else\n"
            "s_waitcnt lgkmcnt(0)\n"
            ".endif"
            : "=&s"(fields), "=&s"(mask), "=&s"(unit), "=&s"(field)
            : "s"(&__devprof_counter_copies)
            : "scc");
    uint64_t offset = (uint64_t)fields.y << 32 | fields.x;
    uint32_t stride = fields.z;
    return (struct copy){offset + (unit & mask) * stride, fields.w};
}

// The sum of `step` over the active lanes. The step is nearly always the constant 1: then nothing is left of this function.
// If it is the condition of a select (clang's -fprofile-generate), no loop is left.
DEVPROF_INLINE CONVERGENT uint64_t sum_of_steps(uint64_t step) {
    if (__builtin_amdgcn_ballot_w64(step > 1) == 0)
        return __builtin_popcountg(__builtin_amdgcn_ballot_w64(step != 0));
    uint64_t sum = 0, left = __builtin_amdgcn_ballot_w64(1);
    do {
        uint32_t lane = __builtin_ctzg(left);
        uint64_t lanes_step = (uint64_t)__builtin_amdgcn_readlane(step >> 32, lane) << 32 |
                              (uint32_t)__builtin_amdgcn_readlane(step, lane);
        uint64_t others = __builtin_amdgcn_ballot_w64(step != lanes_step);
        sum += lanes_step * __builtin_popcountg(left & ~others);
        left &= others;
    } while (left != 0);
    return sum;
}

// Counters are in global memory. With these types, an addition is one instruction and needs no check of the address.
typedef __attribute__((address_space(1))) char global_byte;
typedef __attribute__((address_space(1))) uint64_t global_counter;

// The pointer of the first active lane. No builtin function of clang is for pointers.
CONVERGENT global_byte *first_lanes_pointer(global_byte *pointer) __asm__("llvm.amdgcn.readfirstlane.p1");

// Adds `sum` to the counter at `base` + `offset`. To be called by one lane.
DEVPROF_INLINE void add(global_byte *base, uint32_t offset, uint64_t sum) {
    // The compiler must not know that all lanes would have the same address: it would add up over the lanes first.
    __asm__("" : "+v"(offset));
    __scoped_atomic_fetch_add((global_counter *)(base + offset), sum, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE);
}

// Adds `step` for every active lane to `counter`: to a copy, or, if there are no copies, to the counter itself. Without
// copies, full waves add to `uniform_counter`, too (with copies, the host computes it from the copies of full waves). A wave is
// full if all of its lanes count. `counts`: this lane does. A lane that does not has the step 0.
//
// Each instruction counts here (tools/bench/README.md, "Counter updates on AMD GPUs"). The empty statements hide how a value
// was computed, so that the compiler keeps it in a register and does not take the computation apart.
DEVPROF_INLINE CONVERGENT void count(uint64_t *counter, uint64_t *uniform_counter, uint64_t step, int counts) {
    const uint32_t lanes = __builtin_amdgcn_wavefrontsize();
    struct copy copy = find_copy();
    // How many lanes count in a wave that adds to its uniform counter: no wave has so many if there are copies.
    uint32_t uniform = copy.full ? ~0u : lanes;
    __asm__("" : "+s"(copy.offset), "+s"(uniform));
    // Computed here, the addresses for all counters of a function have one base. Such a statement needs a pointer that is the
    // same in all lanes. It always is, but the compiler does not know that in a copy of this function that is not inlined.
    global_byte *destination = first_lanes_pointer((global_byte *)counter) + copy.offset;
    __asm__("" : "+s"(destination));

    uint64_t counting = __builtin_amdgcn_ballot_w64(counts);
    uint32_t number = __builtin_popcountg(counting);
    uint64_t sum = sum_of_steps(step);
    uint32_t lower_lanes = __builtin_amdgcn_mbcnt_hi(counting >> 32, __builtin_amdgcn_mbcnt_lo(counting, 0));
    if (counts && lower_lanes == 0) {
        add(destination, number == lanes ? copy.full : 0, sum);
        if (__builtin_expect(number == uniform, 0) && uniform_counter)
            add((global_byte *)uniform_counter, 0, sum);
    }
}

// Called by code that clang instruments. A wave is full if no lane is disabled by a branch, and the block does not end within the wave.
CALLED void __llvm_profile_instrument_gpu(uint64_t *counter, uint64_t *uniform_counter, uint64_t step) {
    count(counter, uniform_counter, step, 1);
}

// For updates that the pass of src/device/counter-pass moved in front of a branch: lanes that do not take the branch have the step 0.
CALLED void __devprof_instrument_taken(uint64_t *counter, uint64_t *uniform_counter, uint64_t step) {
    count(counter, uniform_counter, step, step != 0);
}

// For code that calls the routines of lists.s: where this compute unit's copy is, and the offset of full waves in it.
CALLED uint64_t __devprof_copy_offset(void) { return find_copy().offset; }
CALLED uint32_t __devprof_copy_full(void) {
    uint32_t full = find_copy().full;
    // Without this, it stays in the register in which the load put it, and is moved for each call.
    __asm__("" : "+s"(full));
    return full;
}

// Adds the sums of updates that the pass of src/device/counter-pass moved out of a loop. Each active lane has two: `all` of its
// updates, and `full` of those in full waves. Lanes that left the loop earlier or later call it on their own.
CALLED void __devprof_instrument_sums(uint64_t *counter, uint64_t *uniform_counter, uint64_t all, uint64_t full) {
    struct copy copy = find_copy();
    global_byte *destination = first_lanes_pointer((global_byte *)counter) + copy.offset;
    uint64_t active = __builtin_amdgcn_ballot_w64(1);
    uint64_t full_sum = sum_of_steps(full), partial_sum = sum_of_steps(all - full);
    uint32_t lower_lanes = __builtin_amdgcn_mbcnt_hi(active >> 32, __builtin_amdgcn_mbcnt_lo(active, 0));
    if (lower_lanes == 0) {
        if (partial_sum)
            add(destination, 0, partial_sum);
        if (full_sum) {
            add(destination, copy.full, full_sum);
            if (copy.full == 0 && uniform_counter)
                add((global_byte *)uniform_counter, 0, full_sum);
        }
    }
}

// The first fields of hsa_kernel_dispatch_packet_t (hsa/hsa.h), up to the grid size.
struct dispatch_packet {
    uint16_t header, setup;
    uint16_t workgroup_size_x, workgroup_size_y, workgroup_size_z, reserved0;
    uint32_t grid_size_x, grid_size_y, grid_size_z;
};

// A section that is not loaded. It has one byte, plus one byte per copy of the function below. Its size tells readers
// of the code object whether it uses sampling (src/formats/code-objects/src/object.rs).
#define SAMPLING_MARK ".pushsection .devprof.sampling,\"\",@progbits\n.byte 1\n.popsection"
__asm__(SAMPLING_MARK);

// Whether this block counts: one in 2^bits blocks does. The grid size comes from the packet, which is the same for every
// code object version; the hidden kernel arguments are not.
CALLED int __llvm_profile_sampling_gpu(uint32_t bits) {
    __asm__ volatile(SAMPLING_MARK);
    uint32_t block = __gpu_block_id_x(), y = __gpu_block_id_y(), z = __gpu_block_id_z();
    if (y | z) {
        const struct dispatch_packet *packet = (const struct dispatch_packet *)__builtin_amdgcn_dispatch_ptr();
        uint32_t blocks_x = (packet->grid_size_x + packet->workgroup_size_x - 1) / packet->workgroup_size_x;
        uint32_t blocks_y = (packet->grid_size_y + packet->workgroup_size_y - 1) / packet->workgroup_size_y;
        block += blocks_x * (y + blocks_y * z);
    }
    return devprof_is_sampled(block, bits);
}
#endif
#pragma clang attribute pop
