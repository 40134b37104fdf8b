// A program with two images, one of which is never used: the driver does not load it, and it has no profile. A program
// that uses the GPU but launches nothing has none at all.
//
// VARIANTS: preload archive
// RUN: %{cu} main.cu -o main.o
// RUN: %{cu} other.cu -o other.o
// RUN: %{cxx} main.o other.o -o out/a %{link}
// GPU: LLVM_PROFILE_FILE=one.profraw %a launch
// GPU: LLVM_PROFILE_FILE=none.profraw %a memory
// GPU: LLVM_PROFILE_FILE=nothing.profraw %a
//
// CHECK: none.profraw: main
// CHECK: nothing.profraw: main
// CHECK: one.profraw: main
// CHECK: sm_90.one.profraw: _Z4usedPi: [64]
// CHECK: sm_90.one.profraw: _Z5neverPi: [0, 0]

//--- other.cu
__global__ void other(int *out) { *out = 1; }
void launch_other(int *out) { other<<<1, 1>>>(out); }

//--- main.cu
#include "check.h"
void launch_other(int *out);

__global__ void used(int *out) { out[threadIdx.x] = 1; }
__global__ void never(int *out) {
    if (threadIdx.x == 0)
        *out = 2;
}

int main(int argc, char **argv) {
    if (argc > 3)
        launch_other(nullptr), never<<<1, 1>>>(nullptr);
    if (argc == 1)
        return 0;
    int *out = device_ints(64);
    if (argv[1][0] == 'l')
        used<<<1, 64>>>(out);
    CHECK(cudaDeviceSynchronize());
}
