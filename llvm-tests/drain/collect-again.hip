// A collect call writes what has been counted so far. Later launches are in the same file at exit, and are counted
// once.
//
// REQUIRES: gfx1100
// RUN: %hip_cxx %pgo %exact -O2 %s -o a %devprof_a && ./a
// RUN: ls | grep profraw | FileCheck %s --check-prefix=FILES
// RUN: %counts first.profraw | FileCheck %s --check-prefix=FIRST
// RUN: %counts gfx1100.default.profraw | FileCheck %s
#include "check.h"

extern "C" int __llvm_profile_hip_collect_device_data(void);

__global__ void kernel(int *out) { out[threadIdx.x] = 1; }

int main() {
    int *out = device_ints(64);
    kernel<<<1, 64>>>(out);
    if (__llvm_profile_hip_collect_device_data() != 0)
        return 1;
    if (rename("gfx1100.default.profraw", "first.profraw") != 0)
        return 2;
    kernel<<<3, 64>>>(out);
    if (__llvm_profile_hip_collect_device_data() != 0)
        return 3;
    kernel<<<1, 32>>>(out);
    CHECK(hipDeviceSynchronize());
}

// FILES:      {{^}}default.profraw{{$}}
// FILES-NEXT: {{^}}first.profraw{{$}}
// FILES-NEXT: {{^}}gfx1100.default.profraw{{$}}
// FILES-NOT:  {{.}}

// The collect call waited for the launch before it.
// FIRST: {{^}}_Z6kernelPi: [64]{{$}}

// CHECK: {{^}}_Z6kernelPi: [288]{{$}}
