// The same image on two GPUs: a profile for each, whose counts are exact.
//
// VARIANTS: preload inject archive
// CHECK: sm_90.1.default.profraw: _Z6kernelPi: [128, 80]
// CHECK: sm_90.default.profraw: _Z6kernelPi: [64, 40]
#include "check.h"

__global__ void kernel(int *out) {
    if (threadIdx.x < 40)
        out[threadIdx.x] = 1;
}

int main() {
    int count;
    CHECK(cudaGetDeviceCount(&count));
    if (count < 2)
        SKIP("this machine has one GPU");
    for (int n = 0; n < 2; n++) {
        CHECK(cudaSetDevice(n));
        kernel<<<1 + n, 64>>>(device_ints(64));
    }
    for (int n = 0; n < 2; n++) {
        CHECK(cudaSetDevice(n));
        CHECK(cudaDeviceSynchronize());
    }
}
