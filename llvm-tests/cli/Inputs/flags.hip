// 8 workgroups (with sampling, one in eight would be counted) of 64 threads. In each, 32 threads take the branch, 16 of them
// with an even number.
#include "check.h"

__device__ __noinline__ int halved(int i) {
    if (i % 2 == 0)
        return i / 2;
    return 0;
}

__global__ void branch(int *out) {
    int i = threadIdx.x;
    if (i % 2 == 0)
        out[i] = halved(i / 2);
}

int main() {
    volatile int sum = 0;
    for (int i = 0; i < 7; i++)
        sum = sum + i;
    branch<<<8, 64>>>(device_ints(64));
    CHECK(hipDeviceSynchronize());
}
