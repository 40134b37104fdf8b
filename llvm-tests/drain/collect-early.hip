// A collect call before the first launch, when there is nothing to collect, succeeds. The counts at exit are complete.
//
// RUN: %hip_cxx %pgo %exact -O2 %s -o a %devprof_a && ./a
// RUN: ls | grep profraw | FileCheck %s --check-prefix=FILES
// RUN: %counts gfx1100.default.profraw | FileCheck %s
#include "check.h"

extern "C" int __llvm_profile_hip_collect_device_data(void);

__global__ void kernel(int *out) { out[threadIdx.x] = 1; }

int main() {
    if (__llvm_profile_hip_collect_device_data() != 0)
        return 1;
    int *out = device_ints(64);
    if (__llvm_profile_hip_collect_device_data() != 0)
        return 2;
    kernel<<<1, 64>>>(out);
    CHECK(hipDeviceSynchronize());
}

// FILES:      {{^}}default.profraw{{$}}
// FILES-NEXT: {{^}}gfx1100.default.profraw{{$}}
// FILES-NOT:  {{.}}

// CHECK: {{^}}_Z6kernelPi: [64]{{$}}
