// Kernels in a green context: the first launch of a program's kernel, and a module that is loaded there. Both belong to the
// primary context, and are counted after the green context was destroyed. With `last`, the green context is the primary one's
// only user, so its destruction ends both.
//
// VARIANTS: preload archive snapshots
// RUN: %{module} module.cu -c -o out/module.cubin
// GPU: %if snapshots %{ export DEVPROF_SNAPSHOT_MS=1 %}
// GPU: for how in stays last; do LLVM_PROFILE_FILE=$how.profraw %a $PROGRAM/module.cubin $how; done
//
// CHECK: last.profraw: main
// CHECK: sm_90*.last.profraw: entry: [64, 20]
// CHECK: sm_90*.stays.profraw: _Z6kernelPi: [192, 80]
// CHECK: sm_90*.stays.profraw: entry: [96, 30]
// CHECK: stays.profraw: main

//--- module.cu
extern "C" __global__ void entry(int *out) {
    if (threadIdx.x < 10)
        atomicAdd(out, 1);
}

//--- main.cu
#include "check.h"
#include <string.h>

__global__ void kernel(int *out) {
    if (threadIdx.x < 40)
        out[threadIdx.x] = 1;
}

int main(int, char **argv) {
    bool stays = !strcmp(argv[2], "stays");
    CHECK(cuInit(0));
    CUcontext primary = nullptr, context;
    CUdevResource all, part;
    CUdevResourceDesc description;
    CUgreenCtx green;
    unsigned groups = 1;
    if (stays) {
        CHECK(cuDevicePrimaryCtxRetain(&primary, 0));
        CHECK(cuCtxSetCurrent(primary));
    }
    CHECK(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
    CHECK(cuDevSmResourceSplitByCount(&part, &groups, &all, nullptr, 0, 16));
    CHECK(cuDevResourceGenerateDesc(&description, &part, 1));
    CHECK(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    CHECK(cuCtxFromGreenCtx(&context, green));
    CHECK(cuCtxSetCurrent(context));
    CUdeviceptr out;
    CHECK(cuMemAlloc(&out, 64 * 4));
    CUmodule module;
    CUfunction function;
    CHECK(cuModuleLoad(&module, argv[1]));
    CHECK(cuModuleGetFunction(&function, module, "entry"));
    void *arguments[] = {&out};
    for (int n = 0; n < 2; n++)
        CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr));
    if (stays)
        kernel<<<1, 64>>>((int *)out);
    CHECK(cuCtxSynchronize());
    CHECK(cuCtxSetCurrent(primary));
    CHECK(cuGreenCtxDestroy(green));
    if (stays) {
        kernel<<<1, 128>>>((int *)out);
        CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr));
        CHECK(cudaDeviceSynchronize());
    }
}
