// With -foffload-lto=thin a code object has several notes with metadata, and the kernels are in one of them. inspect and
// report have all kernels.
//
// REQUIRES: gfx1100
// RUN: %hip_cxx %pgo %exact -O1 -foffload-lto=thin %s -o a %devprof_a && ./a
// RUN: %devprof extract a -o extracted && llvm-readelf -n extracted/*.co | FileCheck %s --check-prefix=NOTES
// RUN: %devprof inspect a | FileCheck %s --check-prefix=INSPECT
// RUN: %devprof report a --profile gfx1100.default.profraw --fail-under-kernels 50 | FileCheck %s --check-prefix=REPORT
// RUN: sh -c '%devprof report a --profile gfx1100.default.profraw --fail-under-kernels 51 > out; test $? = 4'
#include "check.h"

__global__ void runs(int *out) { out[threadIdx.x] = 1; }
__global__ void never_runs(int *out) { out[threadIdx.x] = 2; }

int main() {
    int *out = device_ints(64);
    runs<<<1, 64>>>(out);
    if (out == nullptr)
        never_runs<<<1, 64>>>(out);
    CHECK(hipDeviceSynchronize());
}

// NOTES-COUNT-2: NT_AMDGPU_METADATA
// INSPECT: gfx1100 1 {{.*}} 2 raw version 11 yes
// REPORT:      Lines Branches Kernel
// REPORT-NEXT: 0 % 0/1 {{.*}} never_runs(int*) (never ran)
// REPORT-NEXT: 100 % 1/1 {{.*}} runs(int*)
