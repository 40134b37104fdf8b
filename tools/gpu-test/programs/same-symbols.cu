// Two modules with the same symbols are loaded at once, and each has its own counters. The functions of the first pair
// have the same structure: their counts are added up in one profile. In the second pair the structure differs, and with
// it the hash: two profiles. In the third pair, one module is unloaded first.
//
// VARIANTS: plain+preload plain+archive
// RUN: %{module} module.cu -DLIMIT=10 -c -o out/10.cubin
// RUN: %{module} module.cu -DLIMIT=40 -c -o out/40.cubin
// RUN: %{module} module.cu -DLOOP -c -o out/loop.cubin
// GPU: LLVM_PROFILE_FILE=alike.profraw %a $PROGRAM/10.cubin $PROGRAM/40.cubin
// GPU: LLVM_PROFILE_FILE=different.profraw %a $PROGRAM/10.cubin $PROGRAM/loop.cubin
// GPU: LLVM_PROFILE_FILE=unloaded.profraw %a $PROGRAM/10.cubin $PROGRAM/loop.cubin unload
// GPU: LLVM_PROFILE_FILE=twice.profraw %a $PROGRAM/10.cubin $PROGRAM/10.cubin unload
//
// 64 threads of the first module, 2 × 64 of the second one.
// CHECK: sm_90*.alike.profraw: 2 files
// CHECK: sm_90*.alike.profraw: entry: [192, 90]
// CHECK: sm_90*.different.profraw: 2 files
// CHECK: sm_90*.different.profraw: entry: [128, 384]
// CHECK: sm_90*.different.profraw: entry: [64, 10]
// CHECK: sm_90*.unloaded.profraw: 2 files
// CHECK: sm_90*.unloaded.profraw: entry: [128, 384]
// CHECK: sm_90*.unloaded.profraw: entry: [64, 10]
// CHECK: sm_90.twice.profraw: entry: [192, 30]

//--- module.cu
extern "C" __global__ void entry(int *out) {
#ifdef LOOP
    for (int i = 0; i < 3; i++)
        out[threadIdx.x] += i;
#else
    if (threadIdx.x < LIMIT)
        out[threadIdx.x] = 1;
#endif
}

//--- main.cpp
#include "check.h"

int main(int argc, char **argv) {
    int *out = device_ints(64);
    void *arguments[] = {&out};
    CUmodule modules[2];
    CUfunction functions[2];
    for (int n = 0; n < 2; n++) {
        CHECK(cuModuleLoad(&modules[n], argv[1 + n]));
        CHECK(cuModuleGetFunction(&functions[n], modules[n], "entry"));
    }
    for (int n = 0; n < 2; n++)
        CHECK(cuLaunchKernel(functions[n], n + 1, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr));
    CHECK(cudaDeviceSynchronize());
    if (argc > 3)
        CHECK(cuModuleUnload(modules[0]));
}
