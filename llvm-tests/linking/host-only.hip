// Only the host's code is instrumented: the program exits normally, with the host's counts and no device file, and
// devprof does not cause more code objects to be loaded. With LLVM 23's own runtime the program aborts.
//
// REQUIRES: llvm-runtime, model
// RUN: %hip_cxx %host_pgo -O2 %s -o a %devprof_a && ./a
// RUN: ls | grep profraw | FileCheck %s --check-prefix=FILES
// RUN: %counts default.profraw | FileCheck %s
//
// RUN: %clang -shared -fPIC -O1 -Wall %inputs/executables.c -o executables.so
// RUN: %hip_cxx -O2 %s -o plain && bash -c 'LD_PRELOAD=$PWD/executables.so:$LD_PRELOAD ./plain 2>&1 | grep executables' > plain.err
// RUN: bash -c 'LD_PRELOAD=$PWD/executables.so:$LD_PRELOAD ./a 2>&1 | grep executables' > a.err && diff plain.err a.err
// RUN: env LLVM_PROFILE_FILE=preload.profraw bash -c 'LD_PRELOAD=%devprof_so:$PWD/executables.so:$LD_PRELOAD ./plain 2>&1 | grep executables' > preload.err
// RUN: diff plain.err preload.err && not ls gfx1100.preload.profraw
//
// RUN: %hip_cxx %host_pgo -O2 %s -o llvm && env LLVM_PROFILE_FILE=llvm.profraw bash -c './llvm; echo status $?' 2>&1 | FileCheck %s --check-prefix=LLVM
// LLVM: status 134
#include "check.h"

__global__ void kernel(int *out) { out[threadIdx.x] = 1; }

int main() {
    int *out = device_ints(64);
    for (int i = 0; i < 3; i++)
        kernel<<<1, 64>>>(out);
    CHECK(hipDeviceSynchronize());
}

// FILES:     {{^}}default.profraw{{$}}
// FILES-NOT: {{.}}

// CHECK: {{^}}main: [1, 3
