// Blank lines are not code: a lone one is an empty skipped region for clang. The report has the same lines as llvm-cov.
//
// REQUIRES: gfx1100
// RUN: %hip_cxx %pgo %exact -O1 %s -o a %devprof_a && ./a
// RUN: %devprof report a --profile gfx1100.default.profraw --format lcov -o a.lcov
// RUN: llvm-objdump --offloading a > extracted && %profdata merge gfx1100.default.profraw -o a.profdata
// RUN: %cov export -format=lcov -instr-profile=a.profdata a.0.hip*gfx1100 > llvm-cov.lcov
// RUN: grep ^DA: a.lcov > lines && grep ^DA: llvm-cov.lcov | diff - lines
// RUN: FileCheck %s < lines
#include "check.h"

__global__ void kernel(int *out) {
    int i = threadIdx.x;

    if (i < 40) {

        out[i] = i;

        out[i] += 1;
    }


    out[i] *= 2;

}

int main() {
    kernel<<<1, 64>>>(device_ints(64));
    CHECK(hipDeviceSynchronize());
}

// CHECK: DA:[[#FIRST:]],64
// CHECK-NEXT: DA:[[#FIRST+1]],64
// CHECK-NEXT: DA:[[#FIRST+3]],64
// CHECK-NEXT: DA:[[#FIRST+5]],40
// CHECK-NEXT: DA:[[#FIRST+7]],40
// CHECK-NEXT: DA:[[#FIRST+8]],40
