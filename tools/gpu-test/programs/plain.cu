// A program that is not instrumented: devprof prints nothing and writes nothing.
//
// VARIANTS: plain+preload plain+inject plain+archive
// CHECK-NOT: {{.}}
#include "check.h"

__global__ void kernel(int *out) { out[threadIdx.x] = 1; }

int main() {
    kernel<<<1, 64>>>(device_ints(64));
    CHECK(cudaDeviceSynchronize());
}
