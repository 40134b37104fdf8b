// Unless sampling is turned off, clang counts one block in eight, by the block's linear number in the grid, whichever
// dimensions the grid has.
//
// RUN: %hip_cxx %pgo -O2 %s -o a %devprof_a && ./a
// RUN: %counts gfx1100.default.profraw | FileCheck %s
// RUN: %hip_cxx %pgo -O2 -Xarch_device -mllvm=--offload-pgo-sampling=1 %s -o a %devprof_a && ./a
// RUN: %counts gfx1100.default.profraw | FileCheck %s --check-prefix=HALF
#include "check.h"

__global__ void flat(int *out) { out[threadIdx.x] = 1; }
__global__ void high(int *out) { out[threadIdx.x] = 1; }
__global__ void deep(int *out) { out[threadIdx.x] = 1; }

int main() {
    int *out = device_ints(256);
    flat<<<4, 256>>>(out);
    high<<<dim3(1, 16), 64>>>(out);
    deep<<<dim3(3, 3, 5), 32>>>(out);
    CHECK(hipDeviceSynchronize());
}

// Block 0 of 4; 0 and 8 of 16; 0, 8, 16, 24, 32, 40 of 45.
// CHECK:      {{^}}_Z4deepPi: [192]{{$}}
// CHECK-NEXT: {{^}}_Z4flatPi: [256]{{$}}
// CHECK-NEXT: {{^}}_Z4highPi: [128]{{$}}
// CHECK-NOT:  {{.}}

// HALF:      {{^}}_Z4deepPi: [736]{{$}}
// HALF-NEXT: {{^}}_Z4flatPi: [512]{{$}}
// HALF-NEXT: {{^}}_Z4highPi: [512]{{$}}
// HALF-NOT:  {{.}}
