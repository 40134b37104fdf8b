// A program exits while it captures a stream. devprof cannot wait for kernels of other streams then, because that would make the
// capture fail, and reports that. Captures whose stream or context was destroyed do not count.
//
// VARIANTS: preload archive
// GPU: for how in capturing stream context; do LLVM_PROFILE_FILE=$how.profraw %a $how; done
//
// CHECK: stderr: devprof: a stream is being captured, so devprof does not wait for kernels that still run: what they count from now on is lost
// CHECK: capturing.profraw: main
// CHECK: context.profraw: main
// CHECK: sm_90.capturing.profraw: _Z6kernelPi: [64, 40]
// CHECK: sm_90.context.profraw: _Z6kernelPi: [64, 40]
// CHECK: sm_90.stream.profraw: _Z6kernelPi: [64, 40]
// CHECK: stream.profraw: main
#include "check.h"
#include <string.h>

__global__ void kernel(int *out) {
    if (threadIdx.x < 40)
        out[threadIdx.x] = 1;
}

int main(int, char **argv) {
    kernel<<<1, 64>>>(device_ints(64));
    CHECK(cudaDeviceSynchronize());
    CUcontext primary, other;
    CUstream stream;
    CHECK(cuCtxGetCurrent(&primary));
    CHECK(cuCtxCreate(&other, nullptr, 0, 0));
    CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
    if (!strcmp(argv[1], "stream"))
        CHECK(cuStreamDestroy(stream));
    if (!strcmp(argv[1], "context"))
        CHECK(cuCtxDestroy(other));
    CHECK(cuCtxSetCurrent(primary));
}
