// If host code is instrumented, LLVM 23's own runtime also collects, but only kernels, into files next to devprof's.
// Merging the directory counts nothing twice. If only LLVM's runtime collected, its files are used. Its own files are
// written without %m here: with %m it sometimes writes the device profile over the host profile (3 of 720 runs).
//
// RUN: %hip_cxx %pgo %exact -O1 %s -o a
// RUN: env LLVM_PROFILE_FILE=llvm/x.profraw ./a
// RUN: %hip_cxx %device_pgo %exact -O1 %s -o b && %devprof run --profile 'both/%%m.profraw' ./b 2> err
// RUN: cp llvm/*.profraw both && ls both | grep -c gfx1100 | FileCheck %s --check-prefix=FILES
// RUN: %devprof merge both -o both.profdata 2> err && FileCheck %s --check-prefix=WARNING < err
// RUN: %counts both.profdata | FileCheck %s
// RUN: %devprof run --profile 'own/%%p.profraw' ./a 2> err && %devprof merge own -o own.profdata
// RUN: %counts own.profdata | FileCheck %s
// RUN: %devprof merge llvm -o llvm.profdata 2> err && count 0 < err
// RUN: %if llvm-runtime %{ %counts llvm.profdata | FileCheck %s --check-prefix=LLVM %}
//
// FILES: {{^}}2{{$}}
// WARNING: devprof: LLVM's own runtime collected device profiles, too; {{.*}}both/gfx1100.x.profraw
//
// CHECK:     {{^}}_Z5twicei: [64]{{$}}
// CHECK:     {{^}}_Z6kernelPi: [64]{{$}}
//
// LLVM-NOT: twice
// LLVM:     {{^}}_Z6kernelPi: [64]{{$}}
#include "check.h"

__device__ __noinline__ int twice(int x) { return 2 * x; }

__global__ void kernel(int *out) { out[threadIdx.x] = twice(threadIdx.x); }

int main() {
    kernel<<<1, 64>>>(device_ints(64));
    CHECK(hipDeviceSynchronize());
}
