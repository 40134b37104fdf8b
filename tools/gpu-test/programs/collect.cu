// The collect call writes what has been counted so far, also before anything was launched; later launches are counted
// once. The reset call discards earlier counts, also those of a kernel that still runs and of an unloaded module.
//
// VARIANTS: preload archive
// RUN: %{cu} main.cu -DDEVPROF_OPTIONAL -o main.o
// RUN: %{cxx} main.o -o out/a %{link}
// RUN: %{module} module.cu -c -o out/module.cubin
// GPU: %a $PROGRAM/module.cubin
//
// The host's counters were not reset.
// CHECK: default.profraw: main
// After the reset: 96 + 32 threads, of which 20 take the branch. The other file has the module that was unloaded before.
// CHECK: sm_90*.default.profraw: _Z6kernelPii: [128, 20]
// CHECK: sm_90*.default.profraw: entry: [0]
// CHECK: sm_90.first.profraw: _Z6kernelPii: [64, 0]
// CHECK: sm_90.second.profraw: _Z6kernelPii: [256, 20]

//--- module.cu
extern "C" __global__ void entry(int *out) { *out = 1; }

//--- main.cu
#include "check.h"
#include "devprof.h"

__global__ void kernel(int *out, int limit) {
    if (threadIdx.x < limit)
        atomicAdd(out, 1);
}

static const char *const name = "sm_90.default.profraw";

int main(int, char **argv) {
    EXPECT(devprof_collect() == 0);
    int *out = device_ints(1);
    EXPECT(devprof_collect() == 0);
    kernel<<<1, 64>>>(out, 0);
    EXPECT(devprof_collect() == 0);
    EXPECT(rename(name, "sm_90.first.profraw") == 0);
    kernel<<<3, 64>>>(out, 0);
    CHECK(cudaGetLastError());
    EXPECT(devprof_reset() == 0);
    kernel<<<4, 64>>>(out, 5);
    EXPECT(devprof_collect() == 0);
    EXPECT(rename(name, "sm_90.second.profraw") == 0);
    CUmodule module;
    CUfunction function;
    void *arguments[] = {&out};
    CHECK(cuModuleLoad(&module, argv[1]));
    CHECK(cuModuleGetFunction(&function, module, "entry"));
    CHECK(cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr));
    CHECK(cudaDeviceSynchronize());
    CHECK(cuModuleUnload(module));
    EXPECT(devprof_reset() == 0);
    kernel<<<1, 96>>>(out, 20);
    kernel<<<1, 32>>>(out, 0);
    CHECK(cudaDeviceSynchronize());
}
