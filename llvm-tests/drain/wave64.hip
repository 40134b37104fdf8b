// Waves of 64 lanes: a group of 96 threads is one full and one half wave, and only the full wave is uniform.
//
// REQUIRES: wave32
// RUN: %hip_cxx %pgo %exact -O0 -mwavefrontsize64 -Xoffload-compiler -mwavefrontsize64 %s -o a %devprof_a && ./a
// RUN: %counts gfx1100.default.profraw | FileCheck %s
// RUN: %profraw gfx1100.default.profraw | FileCheck %s --check-prefix=RAW
// RUN: %hip_cxx %pgo %exact -O3 -mwavefrontsize64 -Xoffload-compiler -mwavefrontsize64 %s -o a %devprof_a && ./a
// RUN: %counts gfx1100.default.profraw | FileCheck %s
// RUN: %profraw gfx1100.default.profraw | FileCheck %s --check-prefix=RAW
#include "check.h"

__global__ void halves(int *out) {
    int i = threadIdx.x;
    if (i < 64)
        out[i] = i;
    if (i % 64 >= 32)
        out[i] = 2 * i;
}

int main() {
    halves<<<1, 96>>>(device_ints(96));
    CHECK(hipDeviceSynchronize());
}

// CHECK:     {{^}}_Z6halvesPi: [96, 64, 32]{{$}}
// CHECK-NOT: {{.}}

// RAW: {{^}}record 0: counters [96, 64, 32] uniform [64, 64, 0] wave size 64{{$}}
