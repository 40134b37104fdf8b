// Unless sampling is turned off, clang counts one block in eight, by the block's linear number in the grid, whichever
// dimensions the grid has.
//
// VARIANTS: sampling O0+sampling sampling+rdc
// UNEQUAL: *: it does not count all blocks
// CHECK: sm_90.default.profraw: _Z4deepPi: [192]
// Block 0 of 4; 0 and 8 of 16; 0, 8, 16, 24, 32, 40 of 45.
// CHECK: sm_90.default.profraw: _Z4flatPi: [256]
// CHECK: sm_90.default.profraw: _Z4highPi: [128]
#include "check.h"

__global__ void flat(int *out) { out[threadIdx.x] = 1; }
__global__ void high(int *out) { out[threadIdx.x] = 1; }
__global__ void deep(int *out) { out[threadIdx.x] = 1; }

int main() {
    int *out = device_ints(256);
    flat<<<4, 256>>>(out);
    high<<<dim3(1, 16), 64>>>(out);
    deep<<<dim3(3, 3, 5), 32>>>(out);
    CHECK(cudaDeviceSynchronize());
}
