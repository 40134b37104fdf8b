// A kernel of 300 ms still runs when main returns. With an argument: it is followed by cudaDeviceReset, and another kernel.
#include "common.h"
__global__ void again() {}
int main(int argc, char **) {
    spin<<<1, 1>>>(300000000);
    CHECK(cudaGetLastError());
    if (argc > 1) {
        CHECK(cudaDeviceReset());
        again<<<1, 1>>>();
        CHECK(cudaDeviceSynchronize());
    }
    return 0;
}
