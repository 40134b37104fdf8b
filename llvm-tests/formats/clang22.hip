// clang 22 writes raw version 10, does not link the device runtime by itself, and increments inline. Its code objects
// are drained, too, and llvm-profdata 22 reads the file.
//
// REQUIRES: debian
// RUN: %hip_cxx22 %pgo -fprofile-update=atomic -O2 %device_rt22 %s -o a %take_devprof %devprof_a && ./a
// RUN: %profraw gfx1100.default.profraw | FileCheck %s --check-prefix=RAW
// RUN: %counts22 gfx1100.default.profraw | FileCheck %s
// RUN: not %profdata show gfx1100.default.profraw
#include "check.h"

__device__ __noinline__ int twice(int x) { return 2 * x; }

__global__ void kernel(int *out) {
    int i = threadIdx.x;
    if (i % 4 == 0)
        out[i] = twice(i);
}

int main() {
    kernel<<<3, 64>>>(device_ints(64));
    CHECK(hipDeviceSynchronize());
}

// RAW: version 10 flags 0x0
// RAW: records 2

// CHECK:      {{^}}_Z5twicei: [48]{{$}}
// CHECK-NEXT: {{^}}_Z6kernelPi: [192, 48]{{$}}
// CHECK-NOT:  {{.}}
