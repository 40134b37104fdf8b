// 8 groups, as 1 in 8 counts where counters are sampled, of 64 threads, 32 of which take a branch, 16 times with an even
// number.
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
    branch<<<8, 64>>>(device_ints(64));
    CHECK(hipDeviceSynchronize());
}
