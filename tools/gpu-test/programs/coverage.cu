// The line coverage of device code, as `devprof report` shows it: each line with code has the count in its comment.
//
// VARIANTS: preload rdc archive
// CHECK: sm_90.default.profraw: _Z5clampi: [256, 56]
// CHECK: sm_90.default.profraw: _Z6kernelPi: [256, 384, 64, 0]
// AFTER: %{FileCheck}
// AFTER: %devprof report %{program}/a --profile %{results} --format lcov -o lcov
// AFTER: sed -n '/^SF:.*coverage.cu$/,/^end_of_record/s/^DA://p' lcov >lines
// AFTER: awk 'match($0, /\/\/ = [0-9]+$/) { print NR "," substr($0, RSTART + 5) }' test | diff - lines
#include "check.h"

__device__ int clamp(int x) { // = 256
    if (x >= 200)             // = 256
        return 200;           // = 56
    return x;                 // = 200
}                             // = 256

__global__ void kernel(int *out) {                  // = 256
    int i = blockIdx.x * blockDim.x + threadIdx.x;  // = 256
    int sum = 0;                                    // = 256
    for (int n = 0; n < i % 4; n++)                 // = 640
        sum += n;                                   // = 384
    if (i % 4 == 3) {                               // = 256
        sum = 0;                                    // = 64
        if (i > 1000)                               // = 64
            sum = 1;                                // = 0
    }                                               // = 64
    out[i] = clamp(i) + sum;                        // = 256
}                                                   // = 256

int main() {
    kernel<<<2, 128>>>(device_ints(256));
    CHECK(cudaDeviceSynchronize());
}
