// While a kernel runs in one context, modules of another one are unloaded: that waits only for the kernels of their own context.
// The running kernel is counted to its end: it ends after the modules are unloaded.
//
// VARIANTS: preload archive
// RUN: %{module} module.cu -c -o out/module.cubin
// GPU: %a $PROGRAM/module.cubin
//
// CHECK: sm_90*.default.profraw: _Z3runPViS0_Pi: [64, 40]
// CHECK: sm_90*.default.profraw: entry: [96, 30]

//--- module.cu
extern "C" __global__ void entry(int *out) {
    if (threadIdx.x < 10)
        atomicAdd(out, 1);
}

//--- main.cu
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

int main(int, char **argv) {
    int *out = device_ints(64), *host;
    CHECK(cudaMallocHost(&host, 2 * sizeof *host));
    volatile int *started = host, *flag = host + 1;
    host[0] = host[1] = 0;
    CUcontext primary, other;
    CHECK(cuCtxGetCurrent(&primary));
    CHECK(cuCtxCreate(&other, nullptr, 0, 0));
    CUdeviceptr others;
    CHECK(cuMemAlloc(&others, 4));
    CUmodule modules[3];
    for (CUmodule &module : modules) {
        CUfunction function;
        CHECK(cuModuleLoad(&module, argv[1]));
        CHECK(cuModuleGetFunction(&function, module, "entry"));
        void *arguments[] = {&others};
        CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr));
    }
    CHECK(cuCtxSynchronize());
    CHECK(cuCtxSetCurrent(primary));
    run<<<1, 64>>>(started, flag, out);
    CHECK(cudaGetLastError());
    while (!*started) {
    }
    CHECK(cuCtxSetCurrent(other));
    for (CUmodule module : modules)
        CHECK(cuModuleUnload(module));
    *flag = 1;
    CHECK(cuCtxSetCurrent(primary));
    CHECK(cudaDeviceSynchronize());
}
