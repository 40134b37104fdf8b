// Only the device's code is instrumented: the shared library saves its counts without any flag, preloaded and as an
// HSA tool; the archive must be linked explicitly.
//
// RUN: %hip_cxx %device_pgo %exact -O2 %s -o a
// RUN: env LLVM_PROFILE_FILE=none.profraw ./a
// RUN: env LLVM_PROFILE_FILE=preload.profraw %preload ./a
// RUN: env LLVM_PROFILE_FILE=tool.profraw HSA_TOOLS_LIB=%devprof_so ./a
// RUN: %hip_cxx %device_pgo %exact -O2 %s -o b %take_devprof %devprof_a
// RUN: env LLVM_PROFILE_FILE=archive.profraw ./b
// RUN: ls | grep profraw | FileCheck %s --check-prefix=FILES
// RUN: %counts gfx1100.preload.profraw | FileCheck %s
// RUN: %counts gfx1100.tool.profraw | FileCheck %s
// RUN: %counts gfx1100.archive.profraw | FileCheck %s
#include "check.h"

__global__ void kernel(int *out) {
    int i = threadIdx.x;
    if (i < 40)
        out[i] = i;
}

int main() {
    kernel<<<1, 64>>>(device_ints(64));
    CHECK(hipDeviceSynchronize());
}

// FILES:      {{^}}gfx1100.archive.profraw{{$}}
// FILES-NEXT: {{^}}gfx1100.preload.profraw{{$}}
// FILES-NEXT: {{^}}gfx1100.tool.profraw{{$}}
// FILES-NOT:  {{.}}

// CHECK:     {{^}}_Z6kernelPi: [64, 40]{{$}}
// CHECK-NOT: {{.}}
