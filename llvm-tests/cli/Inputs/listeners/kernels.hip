// Kernels for tests, with a line for each.
#include "check.h"

__global__ void k0(int *out) { *out = 0; }
__global__ void k1(int *out) { *out = 1; }
__global__ void k2(int *out) { *out = 2; }
__global__ void k3(int *out) { *out = 3; }
__global__ void k4(int *out) { *out = 4; }
__global__ void k5(int *out) { *out = 5; }
__global__ void k6(int *out) { *out = 6; }
__global__ void k7(int *out) { *out = 7; }
__global__ void k8(int *out) { *out = 8; }

// The kernel may still run when the test ends.
void run(int which) {
    static void (*const kernels[])(int *) = {k0, k1, k2, k3, k4, k5, k6, k7, k8};
    kernels[which]<<<1, 1>>>(device_ints(1));
}
