// A 3-D grid whose size is not a multiple of the group size: 10 × 7 × 3 threads in groups of 4 × 4 × 2 count 210.
//
// RUN: %hip_cxx %pgo %exact -O2 -fno-offload-uniform-block %s -o a %devprof_a && ./a
// RUN: %counts gfx1100.default.profraw | FileCheck %s
#include "check.h"
#include <hip/hip_ext.h>

__global__ void grid(int *out) {
    int x = blockIdx.x * 4 + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y, z = blockIdx.z * 2 + threadIdx.z;
    out[(z * 7 + y) * 10 + x] = x;
    if (z == 2)
        out[0] = 1;
    if (x >= 8 && y >= 4)
        out[1] = 1;
}

int main() {
    int *out = device_ints(210);
    hipFunction_t function;
    CHECK(hipGetFuncBySymbol(&function, (const void *)grid));
    void *arguments[] = {&out};
    CHECK(hipExtModuleLaunchKernel(function, 10, 7, 3, 4, 4, 2, 0, 0, arguments, nullptr));
    CHECK(hipDeviceSynchronize());
}

// The entry; z == 2; both conditions; the right-hand one evaluated and true.
// CHECK:     {{^}}_Z4gridPi: [210, 70, 18, 42, 18]{{$}}
// CHECK-NOT: {{.}}
