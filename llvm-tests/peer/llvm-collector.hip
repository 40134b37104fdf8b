// The shared library in a program that has LLVM's own collector, which writes a file with the same name and fewer
// records: the complete file of devprof remains.
//
// REQUIRES: llvm-runtime
// RUN: %hip_cxx %pgo %exact -O2 %s -o a
// RUN: env LLVM_PROFILE_FILE=preload.profraw %preload ./a
// RUN: %counts gfx1100.preload.profraw | FileCheck %s
// RUN: env LLVM_PROFILE_FILE=tool.profraw HSA_TOOLS_LIB=%devprof_so ./a
// RUN: %counts gfx1100.tool.profraw | FileCheck %s
#include "check.h"

__device__ __noinline__ int twice(int x) { return 2 * x; }

__global__ void kernel(int *out) {
    int i = threadIdx.x;
    if (i < 48)
        out[i] = twice(i);
}

int main() {
    kernel<<<1, 64>>>(device_ints(64));
    CHECK(hipDeviceSynchronize());
}

// CHECK:      {{^}}_Z5twicei: [48]{{$}}
// CHECK-NEXT: {{^}}_Z6kernelPi: [64, 48]{{$}}
// CHECK-NOT:  {{.}}
