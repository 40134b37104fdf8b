// A kernel that still runs when the program ends, on a stream that nobody waited for, is counted to its end.
//
// RUN: rm -rf %t && mkdir %t && cd %t
// RUN: %hip_cxx %pgo %exact -O2 %s -o a %devprof_a && ./a
// RUN: %counts gfx1100.default.profraw | FileCheck %s
// RUN: %hip_cxx %device_pgo %exact -O2 %s -o b
// RUN: env LLVM_PROFILE_FILE=preload.profraw %preload ./b
// RUN: %counts gfx1100.preload.profraw | FileCheck %s
#include "check.h"

__global__ void longer(int *out, int n) {
    for (int i = 0; i < n; i++)
        atomicAdd(out, i);
}

int main() {
    int *out = device_ints(1);
    hipStream_t stream;
    CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    longer<<<4, 64, 0, stream>>>(out, 1000);
    CHECK(hipGetLastError());
}

// CHECK: {{^}}_Z6longerPii: [256, 256000]{{$}}
