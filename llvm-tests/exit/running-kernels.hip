// Kernels that are still running when the program exits, on streams that the program does not wait for, are counted to
// their end: on the null stream, on a blocking and on a non-blocking one. If the user's timeout is reached, this is
// reported, and what is complete is written. LLVM 23's own runtime does not wait for non-blocking streams.
//
// RUN: %hip_cxx %pgo %exact -O2 -c %s -o a.o
// RUN: %hip_cxx --hip-link %pgo a.o -o a %devprof_a
// RUN: %hip_cxx %device_pgo %exact -O2 %s -o b
// RUN: %hip_cxx --hip-link %pgo a.o -o llvm
//
// RUN: env LLVM_PROFILE_FILE=null.profraw ./a null 1000 2> err && not grep ^devprof: err
// RUN: %counts gfx1100.null.profraw | FileCheck %s
// RUN: env LLVM_PROFILE_FILE=blocking.profraw ./a blocking 1000 2> err && not grep ^devprof: err
// RUN: %counts gfx1100.blocking.profraw | FileCheck %s
// RUN: env LLVM_PROFILE_FILE=non-blocking.profraw ./a non-blocking 1000 2> err && not grep ^devprof: err
// RUN: %counts gfx1100.non-blocking.profraw | FileCheck %s
// RUN: env LLVM_PROFILE_FILE=preload.profraw %preload ./b non-blocking 1000 2> err && not grep ^devprof: err
// RUN: %counts gfx1100.preload.profraw | FileCheck %s
//
// Kernels that HIP's own thread submits later (AMD_DIRECT_DISPATCH=0).
// RUN: env AMD_DIRECT_DISPATCH=0 LLVM_PROFILE_FILE=later.profraw ./a non-blocking 1000 2> err && not grep ^devprof: err
// RUN: %counts gfx1100.later.profraw | FileCheck %s
// CHECK: {{^}}_Z6longerPii: [256, 256000]{{$}}
//
// RUN: env LLVM_PROFILE_FILE=limit.profraw DEVPROF_SYNC_MS=100 ./a non-blocking 100000 2> err
// RUN: FileCheck %s --check-prefix=LIMIT < err && %counts gfx1100.limit.profraw | FileCheck %s --check-prefix=LESS
// LIMIT: devprof: kernels still run after 100 ms (DEVPROF_SYNC_MS): what they count from now on is lost
// LESS:  {{^}}_Z6longerPii: [{{.*}}]{{$}}
//
// RUN: %if llvm-runtime %{ env LLVM_PROFILE_FILE=llvm-null.profraw ./llvm null 1000 && %counts gfx1100*llvm-null.profraw | FileCheck %s %}
// RUN: %if llvm-runtime %{ env LLVM_PROFILE_FILE=llvm.profraw ./llvm non-blocking 30000 && %counts gfx1100*llvm.profraw | FileCheck %s --check-prefix=LLVM %}
// LLVM:     _Z6longerPii:
// LLVM-NOT: 7680000]
#include "check.h"
#include <string.h>

__global__ void longer(int *out, int n) {
    for (int i = 0; i < n; i++)
        atomicAdd(out, i);
}

int main(int, char **argv) {
    int *out = device_ints(1);
    hipStream_t stream = nullptr;
    if (!strcmp(argv[1], "blocking"))
        CHECK(hipStreamCreate(&stream));
    if (!strcmp(argv[1], "non-blocking"))
        CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    longer<<<4, 64, 0, stream>>>(out, atoi(argv[2]));
    CHECK(hipGetLastError());
}
