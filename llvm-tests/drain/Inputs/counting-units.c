// A device runtime in which a wave's unit is the number of its workgroup, so that a test knows which copy of the counters
// it uses. Apart from that, it counts as src/device/device-rt/profile.c does.
//
// INITIAL: the variable's first word. MORE: more fields.
#include <gpuintrin.h>
#include <stdint.h>

#ifndef INITIAL
#define INITIAL 0
#define MORE
#endif

#define HIDDEN __attribute__((visibility("hidden")))
#define BOUNDS(section)                                                     \
    extern const char __start_##section[] __attribute__((weak)) HIDDEN; \
    extern const char __stop_##section[] __attribute__((weak)) HIDDEN

BOUNDS(__llvm_prf_names);
BOUNDS(__llvm_prf_cnts);
BOUNDS(__llvm_prf_data);
BOUNDS(__llvm_prf_ucnts);
__attribute__((weak, visibility("protected"), used)) const uint64_t __llvm_profile_raw_version = 11;

__attribute__((visibility("protected"), used)) const void *const __llvm_profile_sections[] = {
    __start___llvm_prf_names, __stop___llvm_prf_names, __start___llvm_prf_cnts,  __stop___llvm_prf_cnts,
    __start___llvm_prf_data,  __stop___llvm_prf_data,  __start___llvm_prf_ucnts, __stop___llvm_prf_ucnts,
    &__llvm_profile_raw_version,
};

__attribute__((visibility("protected"), used)) struct {
    uint64_t offset;
    uint32_t stride, full, mask, last MORE;
} __devprof_counter_copies = {INITIAL};

static void add(uint64_t address, uint64_t sum) {
    __scoped_atomic_fetch_add((__attribute__((address_space(1))) uint64_t *)address, sum, __ATOMIC_RELAXED,
                              __MEMORY_SCOPE_DEVICE);
}

HIDDEN void __llvm_profile_instrument_gpu(uint64_t *counter, uint64_t *uniform_counter, uint64_t step) {
    uint64_t active = __gpu_lane_mask();
    int is_full = (uint32_t)__builtin_popcountg(active) == __gpu_num_lanes();
    uint64_t sum = step * __builtin_popcountg(active);
    uint64_t to = (uint64_t)counter + __devprof_counter_copies.offset +
                  (uint64_t)(__gpu_block_id_x() & __devprof_counter_copies.mask) * __devprof_counter_copies.stride +
                  (is_full ? __devprof_counter_copies.full : 0);
    if (!__gpu_is_first_in_lane(active))
        return;
    add(to, sum);
    if (__devprof_counter_copies.full == 0 && is_full && uniform_counter)
        add((uint64_t)uniform_counter, sum);
}
