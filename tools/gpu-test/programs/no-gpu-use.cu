// A program that contains kernels and never uses CUDA: devprof does not initialize it, prints nothing and writes nothing.
//
// VARIANTS: preload inject archive
// CHECK: stdout: the driver is not initialized
#include "check.h"

__global__ void kernel(int *out) { out[threadIdx.x] = 1; }

int main(int argc, char **) {
    if (argc > 1)
        kernel<<<1, 1>>>(nullptr);
    // cuInit was not called.
    int count;
    puts(cuDeviceGetCount(&count) == CUDA_ERROR_NOT_INITIALIZED ? "the driver is not initialized" : "the driver is initialized");
}
