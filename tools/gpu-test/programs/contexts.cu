// Several contexts on one GPU, which are destroyed or stay; resets of the device, after which its modules are loaded
// again. All counts of one image are in one profile.
//
// VARIANTS: preload inject archive archive+static
// RUN: %{module} module.cu -c -o out/module.cubin
// GPU: for how in reset context stay; do LLVM_PROFILE_FILE=$how.profraw %a $PROGRAM/module.cubin $how; done
//
// CHECK: context.profraw: main
// CHECK: reset.profraw: main
// CHECK: sm_90*.context.profraw: _Z6kernelPi: [64, 0]
// Three contexts: 1, 2 and 3 blocks of 32 threads, of which 10 take the branch.
// CHECK: sm_90*.context.profraw: entry: [192, 60]
// CHECK: sm_90*.stay.profraw: _Z6kernelPi: [64, 0]
// CHECK: sm_90*.stay.profraw: entry: [192, 60]
// Two resets: 64 threads before the first one, 128 between them, 256 after the second one.
// CHECK: sm_90.reset.profraw: _Z6kernelPi: [448, 40]
// CHECK: stay.profraw: main

//--- module.cu
extern "C" __global__ void entry(int *out) {
    if (threadIdx.x < 10)
        atomicAdd(out, 1);
}

//--- main.cu
#include "check.h"
#include <string>

__global__ void kernel(int *out) {
    if (threadIdx.x >= 216)
        out[0] = 1;
}

static void launch(int threads) {
    kernel<<<1, threads>>>(device_ints(1));
    CHECK(cudaDeviceSynchronize());
}

int main(int, char **argv) {
    std::string how = argv[2];
    launch(64);
    if (how == "reset") {
        CHECK(cudaDeviceReset());
        launch(128);
        CHECK(cudaDeviceReset());
        launch(256);
        return 0;
    }
    CUdevice device;
    CHECK(cuDeviceGet(&device, 0));
    CUcontext contexts[3];
    for (int n = 0; n < 3; n++) {
        CHECK(cuCtxCreate(&contexts[n], nullptr, 0, device));
        CUmodule module;
        CUfunction function;
        CUdeviceptr out;
        CHECK(cuMemAlloc(&out, 4));
        CHECK(cuModuleLoad(&module, argv[1]));
        CHECK(cuModuleGetFunction(&function, module, "entry"));
        void *arguments[] = {&out};
        CHECK(cuLaunchKernel(function, n + 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr));
    }
    for (CUcontext context : contexts) {
        CHECK(cuCtxSetCurrent(context));
        CHECK(cuCtxSynchronize());
        if (how == "context")
            CHECK(cuCtxDestroy(context));
    }
}
