// Grids and blocks of three dimensions, warps that are partly empty, large grids, and loops whose number of rounds differs
// between lanes.
//
// VARIANTS: O0 O1 O2 O3 O2+rdc
// 10 × 7 × 3 threads in blocks of 4 × 4 × 2, of which there are 3 × 2 × 2: 384 start and 174 of them leave. The operands of
// ||: z is compared for 280 threads and not too large for 210, y for 320 and 280. Then z == 2; x >= 8 && y >= 4, of which
// the right operand is evaluated 42 times and true 18 times.
// CHECK: sm_90.default.profraw: _Z4gridPi: [384, 174, 280, 210, 320, 280, 70, 18, 42, 18]
// 65,536 blocks of 64 threads; one thread per block takes the branch.
// CHECK: sm_90.default.profraw: _Z5largePi: [4194304, 65536]
// Lane l makes l rounds: 8 warps × 496, in which n + l is odd if l − n is: 8 × (16 × 16).
// CHECK: sm_90.default.profraw: _Z5stepsPi: [256, 3968, 2048]
// 1, 31, 33 and 1,023 threads, half of which (rounded up) are even.
// CHECK: sm_90.default.profraw: _Z7partialPi: [1088, 546]
#include "check.h"

__global__ void grid(int *out) {
    int x = blockIdx.x * 4 + threadIdx.x, y = blockIdx.y * 4 + threadIdx.y, z = blockIdx.z * 2 + threadIdx.z;
    if (x >= 10 || y >= 7 || z >= 3)
        return;
    out[(z * 7 + y) * 10 + x] = x;
    if (z == 2)
        out[0] = 1;
    if (x >= 8 && y >= 4)
        out[1] = 1;
}

__global__ void partial(int *out) {
    if (threadIdx.x % 2 == 0)
        out[threadIdx.x] = 1;
}

__global__ void large(int *out) {
    if (threadIdx.x == 63)
        out[blockIdx.x % 1024] = 1;
}

__global__ void steps(int *out) {
    int lane = threadIdx.x % 32;
    for (int n = 0; n < lane; n++)
        if ((n + lane) % 2)
            out[threadIdx.x] += n;
}

int main() {
    int *out = device_ints(1024);
    grid<<<dim3(3, 2, 2), dim3(4, 4, 2)>>>(out);
    partial<<<1, 1>>>(out);
    partial<<<1, 31>>>(out);
    partial<<<1, 33>>>(out);
    partial<<<1, 1023>>>(out);
    large<<<65536, 64>>>(out);
    steps<<<1, 256>>>(out);
    CHECK(cudaDeviceSynchronize());
}
