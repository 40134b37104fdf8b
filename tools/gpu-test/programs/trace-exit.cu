// A kernel of 300 ms still runs when main returns. With an argument: it is followed by cudaDeviceReset, and another kernel.
//
// VARIANTS: plain+preload
// CUPTI: needed
// RUN: . $ROOT/lib/trace.sh
// RUN: traced exit %a; kernels spin; unfinished
// RUN: traced reset %a reset; kernels spin; kernels again; unfinished
// STDOUT: exit: exit status 0
// STDOUT: kernels spin: 1
// STDOUT: unfinished: 0
// STDOUT: reset: exit status 0
// STDOUT: kernels spin: 1
// STDOUT: kernels again: 1
// STDOUT: unfinished: 0
#include "trace.h"
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
