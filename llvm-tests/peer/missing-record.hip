// Kernels that are instrumented in host code, but have no record (__profd_NAME) in the code object, although host code names
// it: `other` is only compiled for another GPU (the same happens with a template that only host code instantiates), `plain` is
// not instrumented on the device. LLVM 23's own collector makes HIP abort at exit, and writes no device profile: this is
// the abort that AMD's libraries report. With devprof the program exits normally, with the counts of the other kernel, and
// without a message, because nothing is lost. Preloaded, devprof cannot prevent the abort of the collector that the program
// contains, but has written its file before.
//
// REQUIRES: llvm-runtime, model
// RUN: %hip_cxx %pgo %exact -O2 -DOTHER %s -o llvm-other && %hip_cxx %pgo %exact -O2 -DPLAIN %s -o llvm-plain
// RUN: env LLVM_PROFILE_FILE=llvm-other.x bash -c './llvm-other; echo status $?' 2>&1 | FileCheck %s --check-prefix=LLVM -DNAME=_Z5otherPi
// RUN: env LLVM_PROFILE_FILE=llvm-plain.x bash -c './llvm-plain; echo status $?' 2>&1 | FileCheck %s --check-prefix=LLVM -DNAME=_Z5plainPi
// RUN: not ls gfx1100.llvm-other.x && not ls gfx1100.llvm-plain.x
// LLVM: Cannot create GlobalVar Obj for symbol: __profd_[[NAME]]
// LLVM: status 134
//
// RUN: %hip_cxx %pgo %exact -O2 -DOTHER -DPLAIN %s -o a %devprof_a && env LLVM_PROFILE_FILE=a.x ./a > out 2>&1 && count 0 < out
// RUN: %counts gfx1100.a.x | FileCheck %s
// RUN: %counts a.x | FileCheck %s --check-prefix=HOST
// HOST: {{^}}main: [1,
//
// RUN: env LLVM_PROFILE_FILE=preload.x %preload bash -c './llvm-other; echo status $?' > out 2>&1; FileCheck %s --check-prefix=LLVM -DNAME=_Z5otherPi < out
// RUN: %counts gfx1100.preload.x | FileCheck %s
#include "check.h"

__global__ void kernel(int *out) {
    if (threadIdx.x < 40)
        out[threadIdx.x] = 1;
}

#if defined(OTHER) && (!defined(__HIP_DEVICE_COMPILE__) || defined(__gfx942__))
__global__ void other(int *out) { out[threadIdx.x] = 2; }
#endif

#ifdef PLAIN
#ifdef __HIP_DEVICE_COMPILE__
__attribute__((no_profile_instrument_function))
#endif
__global__ void
plain(int *out) {
    if (threadIdx.x < 10)
        out[threadIdx.x] = 2;
}
#endif

int main(int argc, char **) {
    int *out = device_ints(64);
    kernel<<<1, 64>>>(out);
#if defined(OTHER) && !defined(__HIP_DEVICE_COMPILE__)
    if (argc > 1)
        other<<<1, 64>>>(out);
#endif
#ifdef PLAIN
    plain<<<1, 64>>>(out);
#endif
    CHECK(hipDeviceSynchronize());
}

// CHECK:     {{^}}_Z6kernelPi: [64, 40]{{$}}
// CHECK-NOT: {{.}}
