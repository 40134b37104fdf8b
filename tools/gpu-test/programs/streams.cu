// 16 streams, blocking and non-blocking ones, the null stream and the thread's: all launches count. The program waits for
// none of them.
//
// VARIANTS: preload static
// 18 streams × 50 launches of 256 threads, a quarter of which takes the branch.
// CHECK: sm_90.default.profraw: _Z6kernelPi: [230400, 57600]
#include "check.h"

__global__ void kernel(int *out) {
    if (threadIdx.x % 4 == 0)
        atomicAdd(out, 1);
}

int main() {
    int *out = device_ints(1);
    cudaStream_t streams[18] = {nullptr, cudaStreamPerThread};
    for (int n = 2; n < 18; n++)
        CHECK(cudaStreamCreateWithFlags(&streams[n], n % 2 ? cudaStreamNonBlocking : cudaStreamDefault));
    for (int launch = 0; launch < 50; launch++)
        for (cudaStream_t stream : streams)
            kernel<<<1, 256, 0, stream>>>(out);
    CHECK(cudaGetLastError());
}
