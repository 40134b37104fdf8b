// The driver links two images at run time: two cubins with relocatable code, and PTX, which it compiles first.
//
// VARIANTS: plain+preload plain+archive
// RUN: %{module} one.cu -fgpu-rdc -c -o out/one.cubin
// RUN: %{module} two.cu -fgpu-rdc -c -o out/two.cubin
// RUN: %{module} one.cu -fgpu-rdc -S -o out/one.ptx
// RUN: %{module} two.cu -fgpu-rdc -S -o out/two.ptx
// GPU: LLVM_PROFILE_FILE=cubin.profraw %a $PROGRAM/one.cubin $PROGRAM/two.cubin
// GPU: LLVM_PROFILE_FILE=ptx.profraw %a $PROGRAM/one.ptx $PROGRAM/two.ptx
//
// CHECK: sm_90.cubin.profraw: _Z4halfi: [64, 32]
// CHECK: sm_90.cubin.profraw: entry: [64]
// CHECK: sm_90.ptx.profraw: _Z4halfi: [64, 32]
// CHECK: sm_90.ptx.profraw: entry: [64]

//--- one.cu
extern __device__ int half(int x);
extern "C" __global__ void entry(int *out) { out[threadIdx.x] = half(threadIdx.x); }

//--- two.cu
__device__ int half(int x) {
    if (x % 2)
        return 0;
    return x / 2;
}

//--- main.cpp
#include "check.h"
#include <string>

int main(int, char **argv) {
    int *out = device_ints(64);
    CUlinkState state;
    CHECK(cuLinkCreate(0, nullptr, nullptr, &state));
    for (int n = 1; n <= 2; n++) {
        std::string path = argv[n];
        bool is_ptx = path.substr(path.size() - 3) == "ptx";
        CHECK(cuLinkAddFile(state, is_ptx ? CU_JIT_INPUT_PTX : CU_JIT_INPUT_CUBIN, path.c_str(), 0, nullptr, nullptr));
    }
    void *image;
    size_t size;
    CHECK(cuLinkComplete(state, &image, &size));
    CUmodule module;
    CHECK(cuModuleLoadData(&module, image));
    CHECK(cuLinkDestroy(state));
    CUfunction function;
    CHECK(cuModuleGetFunction(&function, module, "entry"));
    void *arguments[] = {&out};
    CHECK(cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr));
    CHECK(cudaDeviceSynchronize());
}
