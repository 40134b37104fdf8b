// IR-level instrumentation counts a select by adding its condition, which differs between lanes: the count is the
// number of lanes whose condition holds, not the first lane's value times the number of lanes.
//
// RUN: %hip_cxx -fprofile-generate %exact -O2 %s -o a %devprof_a && env LLVM_PROFILE_FILE=a.profraw ./a
// RUN: %counts gfx1100.a.profraw | FileCheck %s
#include "check.h"

__global__ void odd(int *out) {
    int i = threadIdx.x;
    out[i] = i & 1 ? 10 : 33;
}

__global__ void all_but_the_first(int *out) {
    int i = threadIdx.x;
    out[i] = i != 0 ? 10 : 33;
}

int main() {
    int *out = device_ints(64);
    odd<<<1, 64>>>(out);
    all_but_the_first<<<1, 64>>>(out);
    CHECK(hipDeviceSynchronize());
}

// The entry, and how often the select's condition held (clang's condition: the low bit is 0; i is 0).
// CHECK: {{^}}_Z17all_but_the_firstPi: [64, 1]{{$}}
// CHECK: {{^}}_Z3oddPi: [64, 32]{{$}}
