// llvm-cov shows which lines of a kernel ran, and how often, from the merged profile and the program's code object.
//
// RUN: %hip_cxx %pgo %exact -O1 %s -o a %devprof_a && ./a
// RUN: %profdata merge gfx1100.default.profraw -o a.profdata
// RUN: llvm-objdump --offloading a > extracted && mv a.0.hip-amdgcn-amd-amdhsa--gfx1100 a.co
// RUN: %cov report a.co -instr-profile=a.profdata | FileCheck %s --check-prefix=REPORT
// RUN: %cov show a.co -instr-profile=a.profdata -show-branches=count | FileCheck %s --check-prefix=SHOW
#include "check.h"

__device__ int cold(int x) {
    if (x > 1000)
        return 1;
    return x;
}

__global__ void kernel(int *out, int n) {
    int i = threadIdx.x;
    if (i < n)
        out[i] = cold(i);
    else
        out[i] = 0;
}

int main() {
    kernel<<<1, 96>>>(device_ints(96), 30);
    CHECK(hipDeviceSynchronize());
}

// REPORT:      Filename {{.*}} Functions {{.*}} Lines
// REPORT:      TOTAL
// REPORT-SAME: 2 0 100.00%
// REPORT-SAME: 12 1

// SHOW:      30|__device__ int cold(int x) {
// SHOW-NEXT: 30|    if (x > 1000)
// SHOW:      Branch ({{[0-9:]+}}): [True: 0, False: 30]
// SHOW:      0|        return 1;
// SHOW:      30|    return x;
// SHOW:      96|__global__ void kernel(int *out, int n) {
// SHOW-NEXT: 96|    int i = threadIdx.x;
// SHOW-NEXT: 96|    if (i < n)
// SHOW:      Branch ({{[0-9:]+}}): [True: 30, False: 66]
// SHOW:      30|        out[i] = cold(i);
// SHOW-NEXT: 66|    else
// SHOW-NEXT: 66|        out[i] = 0;
