// Byte coverage: a byte for each block, here for the function, the branch that is taken and the other one, which the first
// thread clears that executes the block. llvm-profdata shows 1 for a block that ran.
//
// VARIANTS: O0 O2 rdc lto inject archive archive+rdc
// UNEQUAL: *: it has flags itself
// RUN: %{cu} main.cu -DDEVPROF_OPTIONAL -Xarch_device -mllvm=-enable-single-byte-coverage -Xarch_device -mllvm=-conditional-counter-update -o main.o
// RUN: %{cxx} main.o -o out/a %{link}
// GPU: LLVM_PROFILE_FILE=none.profraw %a 0
// GPU: LLVM_PROFILE_FILE=some.profraw %a 40
// GPU: LLVM_PROFILE_FILE=all.profraw %a 64
// GPU: LLVM_PROFILE_FILE=both.%m.profraw %a 0
// GPU: LLVM_PROFILE_FILE=both.%m.profraw %a 64
// GPU: LLVM_PROFILE_FILE=reset.profraw %a 0 reset 64
//
// CHECK: all.profraw: main
// CHECK: both.*.profraw: main
// CHECK: none.profraw: main
// CHECK: reset.profraw: main
// CHECK: sm_90.all.profraw: _Z6kernelPii: [1, 1, 0]
// CHECK: sm_90.both.*.profraw: _Z6kernelPii: [1, 1, 1]
// CHECK: sm_90.none.profraw: _Z6kernelPii: [1, 0, 1]
// NO-INJECT: sm_90.reset.profraw: _Z6kernelPii: [1, 1, 0]
// A program cannot call the functions of a library that the driver loads.
// INJECT: sm_90.reset.profraw: _Z6kernelPii: [1, 1, 1]
// CHECK: sm_90.some.profraw: _Z6kernelPii: [1, 1, 1]
// CHECK: some.profraw: main

//--- main.cu
#include "check.h"
#include "devprof.h"
#include <string.h>

__global__ void kernel(int *out, int limit) {
    if (threadIdx.x < limit)
        out[threadIdx.x] = 1;
}

int main(int argc, char **argv) {
    int *out = device_ints(64);
    for (int n = 1; n < argc; n++)
        if (!strcmp(argv[n], "reset"))
            EXPECT(devprof_reset() == 0);
        else
            kernel<<<1, 64>>>(out, atoi(argv[n]));
    CHECK(cudaDeviceSynchronize());
}
