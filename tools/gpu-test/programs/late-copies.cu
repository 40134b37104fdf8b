// Copies of the counters are announced before the first kernel of a library can run: the program's own code and a cubin, in the
// first context and next to one that is never used. While a kernel of the library counts, the program launches others, as
// if each were the first. A kernel that saw a part of the announcement would add to variables next to the counters, which
// must stay 0. 50 rounds, each with a new library.
//
// VARIANTS: preload inject archive
// UNEQUAL: *: it reads where the copies of the counters are
// RUN: %{module} module.cu -c -o out/module.cubin
// GPU: LLVM_PROFILE_FILE=copies.profraw %a $PROGRAM/module.cubin
// GPU: CUDA_MODULE_LOADING=EAGER LLVM_PROFILE_FILE=eager.profraw %a $PROGRAM/module.cubin
// GPU: DEVPROF_COUNTER_COPIES_MB=0 LLVM_PROFILE_FILE=none.profraw %a $PROGRAM/module.cubin
//
// CHECK: stdout: in copies: 50 libraries of 50, the program: 1, after a reset: 1
// CHECK: stdout: in copies: 50 libraries of 50, the program: 1, after a reset: 1
// CHECK: stdout: in copies: 0 libraries of 50, the program: 0, after a reset: 0
// CHECK: copies.profraw: main
// CHECK: eager.profraw: main
// CHECK: none.profraw: main
// CHECK: sm_90*.copies.profraw: _Z6kernelPi: [64064, 40040]
// 50 rounds of 528 blocks of 128 threads, each of which goes 2,000 times through the loop, and of 20 small launches; one more
// small launch.
// CHECK: sm_90*.copies.profraw: entry: [3379200, 6758400000, 3379200000]
// CHECK: sm_90*.eager.profraw: _Z6kernelPi: [64064, 40040]
// CHECK: sm_90*.eager.profraw: entry: [3379200, 6758400000, 3379200000]
// CHECK: sm_90*.none.profraw: _Z6kernelPi: [64064, 40040]
// CHECK: sm_90*.none.profraw: entry: [3379200, 6758400000, 3379200000]

//--- module.cu
extern "C" {
__device__ unsigned long long guard[1 << 16];
}

extern "C" __global__ void entry(int *out, int iterations) {
    int sum = 0;
    for (int n = 0; n < iterations; n++)
        if ((n + threadIdx.x) % 2)
            sum += n;
    out[threadIdx.x] = sum;
}

//--- main.cu
#include "check.h"
#include <fstream>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

__global__ void kernel(int *out) {
    if (threadIdx.x < 40)
        out[threadIdx.x] = 1;
}

static bool is_in_copies() {
    CUfunction function;
    CUmodule module;
    CUdeviceptr address;
    unsigned long long offset;
    CHECK(cudaGetFuncBySymbol(&function, (void *)kernel));
    CHECK(cuFuncGetModule(&module, function));
    CHECK(cuModuleGetGlobal(&address, nullptr, module, "__devprof_counter_copies"));
    CHECK(cuMemcpyDtoH(&offset, address, sizeof offset));
    return offset != 0;
}

int main(int, char **argv) {
    std::stringstream bytes;
    bytes << std::ifstream(argv[1], std::ios::binary).rdbuf();
    std::string image = bytes.str();
    int *out = device_ints(128), iterations = 2000;
    // A context that is never used.
    CUcontext other;
    CUdevice device;
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuCtxCreate(&other, nullptr, 0, device));
    CHECK(cuCtxPopCurrent(&other));
    cudaStream_t first, second;
    CHECK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
    std::vector<unsigned long long> guard(1 << 16);
    int in_copies = 0;
    for (int round = 0; round < 50; round++) {
        cudaLibrary_t library;
        cudaKernel_t entry;
        CHECK(cudaLibraryLoadData(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
        CHECK(cudaLibraryGetKernel(&entry, library, "entry"));
        void *arguments[] = {&out, &iterations};
        CHECK(cudaLaunchKernel((void *)entry, dim3(528), dim3(128), arguments, 0, first));
        for (int n = 0; n < 20; n++) {
            kernel<<<1, 64, 0, second>>>(out);
            usleep(1000);
        }
        CHECK(cudaDeviceSynchronize());
        CUdeviceptr address;
        size_t size;
        CHECK(cuLibraryGetGlobal(&address, &size, (CUlibrary)library, "guard"));
        EXPECT(size == guard.size() * sizeof guard[0]);
        CHECK(cuMemcpyDtoH(guard.data(), address, size));
        for (unsigned long long value : guard)
            EXPECT(value == 0);
        unsigned long long offset;
        CHECK(cuLibraryGetGlobal(&address, &size, (CUlibrary)library, "__devprof_counter_copies"));
        CHECK(cuMemcpyDtoH(&offset, address, sizeof offset));
        in_copies += offset != 0;
        CHECK(cudaLibraryUnload(library));
    }
    bool before = is_in_copies();
    // The driver loads the program's code again.
    CHECK(cudaDeviceReset());
    kernel<<<1, 64>>>(device_ints(64));
    CHECK(cudaDeviceSynchronize());
    printf("in copies: %d libraries of 50, the program: %d, after a reset: %d\n", in_copies, before, is_in_copies());
}
