// Sums above 2^32, and steps that differ between lanes: the program calls the device runtime's function itself, for its own
// counters. The sums with and without the pass are those that the host computes.
//
// REQUIRES: debian, wave32
// DEFINE: %{run} = env DEVPROF_COUNTER_COPIES_MB=0 ./a
// RUN: %hip_cxx %device_pgo %exact -O2 %s -o a %take_devprof %devprof_a && %{run} | FileCheck %s
// RUN: %hip_cxx %device_pgo %exact -O2 %hoist %s -o a %take_devprof %devprof_a && %{run} | FileCheck %s
// RUN: %hip_cxx %device_pgo %exact -O2 %hoist --cuda-device-only -S -emit-llvm %s -o - | grep "call .*@__devprof_instrument_sums"
// CHECK: {{^}}right
#include "check.h"

using u64 = unsigned long;
constexpr unsigned LANES = 48, TRIPS = 7;
constexpr u64 STEP = (3ul << 32) + 5;

extern "C" __device__ void __llvm_profile_instrument_gpu(u64 *counter, u64 *uniform, u64 step);
__device__ u64 counter, uniform;

__global__ void kernel() {
    for (unsigned n = 0; n < TRIPS; n++)
        __llvm_profile_instrument_gpu(&counter, &uniform, (STEP << n) + threadIdx.x);
}

int main() {
    kernel<<<1, LANES>>>();
    u64 all = 0, full = 0, found_all, found_full;
    for (unsigned lane = 0; lane < LANES; lane++)
        for (unsigned n = 0; n < TRIPS; n++) {
            all += (STEP << n) + lane;
            // The second wave is not full.
            full += lane < 32 ? (STEP << n) + lane : 0;
        }
    CHECK(hipMemcpyFromSymbol(&found_all, HIP_SYMBOL(counter), sizeof found_all));
    CHECK(hipMemcpyFromSymbol(&found_full, HIP_SYMBOL(uniform), sizeof found_full));
    puts(found_all == all && found_full == full ? "right" : "wrong");
    printf("%lu %lu, expected %lu %lu\n", found_all, found_full, all, full);
}
