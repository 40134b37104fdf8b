// Only the host's code is instrumented: the program ends as it should, with the host's counts and no device file.
//
// RUN: rm -rf %t && mkdir %t && cd %t
// RUN: %hip_cxx %host_pgo -O2 %s -o a %devprof_a && ./a
// RUN: ls | grep profraw | FileCheck %s --check-prefix=FILES
// RUN: %counts default.profraw | FileCheck %s
#include "check.h"

__global__ void kernel(int *out) { out[threadIdx.x] = 1; }

int main() {
    int *out = device_ints(64);
    for (int i = 0; i < 3; i++)
        kernel<<<1, 64>>>(out);
    CHECK(hipDeviceSynchronize());
}

// FILES:     {{^}}default.profraw{{$}}
// FILES-NOT: {{.}}

// CHECK: {{^}}main: [1, 3
