// XProf shows the kernels and API calls of a trace: each kernel with the number of its launches and their parameters, on
// the GPU of each, and flows from the calls to their kernels.
//
// RUN: %hip_cxx -O2 %s -o a
// RUN: %preload DEVPROF_TRACE=x.trace ./a
// RUN: %devprof export -f xplane x.trace -o logs/
// RUN: %xprof %t/logs > logs.json
// RUN: python3 %S/Inputs/xprof.py logs.json | FileCheck %s
// CHECK:      kernel once(int*): 1 of 1,1,1 x 64,1,1
// CHECK-NEXT: kernel twice(int*): 20 of 2,1,1 x 32,1,1
// CHECK-NEXT: line Host Threads/{{[0-9]+}}: 21 hipLaunchKernel
// CHECK-NEXT: device AMD, with compute units
// CHECK-NEXT: 21 flows from hipLaunchKernel to a kernel
#include "check.h"

__global__ void once(int *out) { atomicAdd(out, 1); }
__global__ void twice(int *out) { atomicAdd(out, 2); }

int main() {
    int *out = device_ints(1);
    once<<<1, 64>>>(out);
    for (int n = 0; n < 20; n++)
        twice<<<2, 32>>>(out);
    CHECK(hipDeviceSynchronize());
}
