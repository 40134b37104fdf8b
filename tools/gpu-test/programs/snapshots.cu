// Snapshots while a program launches kernels and loads and unloads modules: each launch is counted once. A snapshot
// waits for no kernel, and does not disturb a stream capture.
//
// VARIANTS: preload archive
// RUN: %{module} module.cu -c -o out/module.cubin
// GPU: DEVPROF_SNAPSHOT_MS=1 %a $PROGRAM/module.cubin
//
// CHECK: sm_90*.default.profraw: _Z6kernelPi: [640000]
// CHECK: sm_90*.default.profraw: entry: [160000]

//--- module.cu
extern "C" __global__ void entry(int *out) { out[threadIdx.x] = 1; }

//--- main.cu
#include "check.h"

__global__ void kernel(int *out) { out[threadIdx.x] = 1; }

int main(int, char **argv) {
    int *out = device_ints(64);
    void *arguments[] = {&out};
    for (int round = 0; round < 100; round++) {
        CUmodule module;
        CUfunction function;
        CHECK(cuModuleLoad(&module, argv[1]));
        CHECK(cuModuleGetFunction(&function, module, "entry"));
        for (int n = 0; n < 100; n++)
            kernel<<<1, 64>>>(out);
        for (int n = 0; n < 25; n++)
            CHECK(cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr));
        CHECK(cudaDeviceSynchronize());
        CHECK(cuModuleUnload(module));
    }
}
