// A program that has kernels but launches none writes the host's file and no device file, even if it uses HIP.
//
// RUN: %hip_cxx %pgo %exact -O2 %s -o a %devprof_a
// RUN: ./a 2>&1 | FileCheck %s --allow-empty
// RUN: ls | grep profraw | FileCheck %s --check-prefix=FILES
// RUN: rm default.profraw && ./a memory
// RUN: ls | grep profraw | FileCheck %s --check-prefix=FILES
#include "check.h"

__global__ void kernel(int *out) { out[threadIdx.x] = 1; }

int main(int argc, char **argv) {
    if (argc > 2)
        kernel<<<1, 64>>>(nullptr);
    if (argc > 1)
        CHECK(hipFree(device_ints(64)));
}

// CHECK-NOT: {{.}}

// FILES:     {{^}}default.profraw{{$}}
// FILES-NOT: {{.}}
