// Device functions that are not kernels have their own counts, inlined or not: the file has all records of the
// device's data section. If host and device are instrumented, LLVM 23's runtime only copies the kernels' records.
//
// RUN: %hip_cxx %pgo %exact -O0 %s -o a %devprof_a && ./a
// RUN: %counts gfx1100.default.profraw | FileCheck %s
// RUN: %hip_cxx %pgo %exact -O3 %s -o a %devprof_a && ./a
// RUN: %counts gfx1100.default.profraw | FileCheck %s
//
// RUN: %if llvm-runtime %{ %hip_cxx %pgo %exact -O2 %s -o llvm && env LLVM_PROFILE_FILE=llvm.profraw ./llvm %}
// RUN: %if llvm-runtime %{ %counts gfx1100*llvm.profraw | FileCheck %s --check-prefix=LLVM %}
#include "check.h"

__device__ int limit(int x) {
    if (x > 100)
        return 100;
    return x;
}

__device__ __noinline__ int twice(int x) { return 2 * x; }

__global__ void kernel(int *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int value = limit(i);
    if (i < 48)
        value += twice(i);
    out[i] = value;
}

int main() {
    kernel<<<2, 64>>>(device_ints(128));
    CHECK(hipDeviceSynchronize());
}

// CHECK:      {{^}}_Z5limiti: [128, 27]{{$}}
// CHECK-NEXT: {{^}}_Z5twicei: [48]{{$}}
// CHECK-NEXT: {{^}}_Z6kernelPi: [128, 48]{{$}}
// CHECK-NOT:  {{.}}

// LLVM:     {{^}}_Z6kernelPi: [128, 48]{{$}}
// LLVM-NOT: {{.}}
