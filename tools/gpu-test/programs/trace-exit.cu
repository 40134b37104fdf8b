// A kernel of 300 ms still runs when main returns. With an argument: it is followed by cudaDeviceReset, and another kernel.
//
// VARIANTS: plain+preload
// REQUIRES: cupti
// GPU: . $ROOT/lib/trace.sh
// GPU: traced exit %a; kernels spin; unfinished
// GPU: traced reset %a reset; kernels spin; kernels again; unfinished
//
// CHECK: stdout: exit: exit status 0
// CHECK: stdout: kernels spin: 1
// CHECK: stdout: unfinished: 0
// CHECK: stdout: reset: exit status 0
// CHECK: stdout: kernels spin: 1
// CHECK: stdout: kernels again: 1
// CHECK: stdout: unfinished: 0
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
