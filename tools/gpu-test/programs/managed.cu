// Managed memory, and memory of the host that the GPU can access. (clang does not support managed variables.)
//
// CHECK: sm_90.default.profraw: _Z6kernelPiS_: [512, 128]
#include "check.h"

__global__ void kernel(int *out, int *total) {
    if (out[threadIdx.x] == 0)
        atomicAdd(total, 1);
    out[threadIdx.x]++;
}

int main() {
    int *managed, *pinned, *total;
    CHECK(cudaMallocManaged(&managed, 64 * sizeof(int)));
    CHECK(cudaMallocManaged(&total, sizeof *total));
    *total = 0;
    CHECK(cudaMallocHost(&pinned, 64 * sizeof(int)));
    for (int i = 0; i < 64; i++)
        managed[i] = pinned[i] = 0;
    for (int n = 0; n < 4; n++) {
        kernel<<<1, 64>>>(managed, total);
        kernel<<<1, 64>>>(pinned, total);
    }
    CHECK(cudaDeviceSynchronize());
    EXPECT(*total == 128);
}
