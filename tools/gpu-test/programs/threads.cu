// Threads that launch, load and unload at the same time. Threads that launch while the program exits.
//
// VARIANTS: preload archive
// RUN: %{module} module.cu -c -o out/module.cubin
// GPU: LLVM_PROFILE_FILE=threads.profraw %a $PROGRAM/module.cubin
//
// 8 threads × 500 launches of 64 threads; 8 × 50 modules, with 3 launches of 32 threads each.
// CHECK: sm_90*.threads.profraw: _Z6kernelPi: [256000]
// CHECK: sm_90*.threads.profraw: entry: [38400, 12000]
// CHECK: threads.profraw: main

//--- module.cu
extern "C" __global__ void entry(int *out) {
    if (threadIdx.x < 10)
        atomicAdd(out, 1);
}

//--- main.cu
#include "check.h"
#include <thread>
#include <vector>

__global__ void kernel(int *out) { atomicAdd(out, 1); }

int main(int, char **argv) {
    int *out = device_ints(1);
    std::vector<std::thread> threads;
    for (int n = 0; n < 8; n++) {
        threads.emplace_back([=] {
            cudaStream_t stream;
            CHECK(cudaStreamCreate(&stream));
            for (int launch = 0; launch < 500; launch++)
                kernel<<<1, 64, 0, stream>>>(out);
            CHECK(cudaStreamSynchronize(stream));
            CHECK(cudaStreamDestroy(stream));
        });
        threads.emplace_back([=] {
            CHECK(cudaSetDevice(0));
            int *mine = out;
            void *arguments[] = {&mine};
            for (int round = 0; round < 50; round++) {
                CUmodule module;
                CUfunction function;
                CHECK(cuModuleLoad(&module, argv[1]));
                CHECK(cuModuleGetFunction(&function, module, "entry"));
                for (int launch = 0; launch < 3; launch++)
                    CHECK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, CU_STREAM_PER_THREAD, arguments, nullptr));
                CHECK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
                CHECK(cuModuleUnload(module));
            }
        });
    }
    for (std::thread &thread : threads)
        thread.join();
    int launched;
    CHECK(cudaMemcpy(&launched, out, sizeof launched, cudaMemcpyDeviceToHost));
    EXPECT(launched == 256000 + 12000);
}
