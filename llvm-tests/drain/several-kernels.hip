// Every kernel of a program has its own counts, summed over its launches. A kernel that is never launched has 0.
//
// RUN: %hip_cxx %pgo %exact -O2 %s -o a %devprof_a && ./a
// RUN: %counts gfx1100.default.profraw | FileCheck %s
#include "check.h"

__global__ void once(int *out) { out[threadIdx.x] = 1; }

__global__ void loops(int *out, int n) {
    for (int i = 0; i < n; i++)
        out[threadIdx.x] += i;
}

__global__ void never(int *out) { out[threadIdx.x] = 3; }

__global__ void twice(int *out) {
    int i = threadIdx.x;
    if (i >= 32)
        out[i] = 4;
}

int main() {
    int *out = device_ints(1024);
    once<<<1, 96>>>(out);
    twice<<<1, 32>>>(out);
    twice<<<3, 64>>>(out);
    loops<<<1, 10>>>(out, 7);
    CHECK(hipDeviceSynchronize());
}

// CHECK:      {{^}}_Z4oncePi: [96]{{$}}
// CHECK-NEXT: {{^}}_Z5loopsPii: [10, 70]{{$}}
// CHECK-NEXT: {{^}}_Z5neverPi: [0]{{$}}
// CHECK-NEXT: {{^}}_Z5twicePi: [224, 96]{{$}}
// CHECK-NOT:  {{.}}
