// Libraries such as UCX retain and release the primary context for each asynchronous copy. While another user keeps the
// context, a release must not wait: here a kernel runs until the last release is over. It is counted, in a traced program, too,
// which need not be instrumented.
//
// VARIANTS: preload archive trace plain+trace
// REQUIRES: cupti || !trace
// GPU: %if trace %{ export DEVPROF_TRACE=a.trace %}
// GPU: %a
//
// PLAIN-NOT: {{.}}
// NO-PLAIN: sm_90.default.profraw: _Z3runPViS0_Pi: [64, 40]
#include "check.h"

static __device__ __attribute__((no_profile_instrument_function, noinline)) void wait(volatile int *flag) {
    while (!*flag) {
    }
}

__global__ void run(volatile int *started, volatile int *flag, int *out) {
    *started = 1;
    wait(flag);
    if (threadIdx.x < 40)
        out[threadIdx.x] = 1;
}

int main() {
    int *out = device_ints(64), *to, *host;
    CHECK(cudaMalloc(&to, sizeof *to));
    CHECK(cudaMallocHost(&host, 3 * sizeof *host));
    volatile int *started = host, *flag = host + 1;
    host[0] = host[1] = host[2] = 0;
    cudaStream_t stream, copies;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&copies, cudaStreamNonBlocking));
    run<<<1, 64, 0, stream>>>(started, flag, out);
    CHECK(cudaGetLastError());
    while (!*started) {
    }
    for (int n = 0; n < 1000; n++) {
        CUcontext context;
        CHECK(cuDevicePrimaryCtxRetain(&context, 0));
        CHECK(cudaMemcpyAsync(to, host + 2, sizeof *to, cudaMemcpyHostToDevice, copies));
        CHECK(cuDevicePrimaryCtxRelease(0));
    }
    // If the releases waited for the kernel, each would take DEVPROF_SYNC_MS.
    *flag = 1;
    CHECK(cudaDeviceSynchronize());
}
