// Copies of the counters: a module, and the program's own code with its first launch on one of several threads, or by a
// graph, or after a query that loads the module. Full warps and partial ones, on all multiprocessors. The program reads
// where the copies are, and whether the counters themselves are unused.
//
// VARIANTS: preload archive
// UNEQUAL: *: it reads where the copies of the counters are
// RUN: %{module} module.cu -c -o out/module.cubin
// GPU: for first in threads graph query; do DEVPROF_COUNTER_COPIES_MB=64 LLVM_PROFILE_FILE=$first.profraw %a $PROGRAM/module.cubin $first; done
// GPU: DEVPROF_COUNTER_COPIES_MB=0 LLVM_PROFILE_FILE=none.profraw %a $PROGRAM/module.cubin threads
//
// CHECK: stdout: counted in copies
// CHECK: stdout: counted in copies
// CHECK: stdout: counted in copies
// CHECK: stdout: counted directly
// CHECK: graph.profraw: main
// CHECK: none.profraw: main
// CHECK: query.profraw: main
// CHECK: sm_90*.graph.profraw: _Z6kernelPi: [1280000, 640000]
// CHECK: sm_90*.graph.profraw: entry: [80000, 16000]
// CHECK: sm_90*.none.profraw: _Z6kernelPi: [1280000, 640000]
// CHECK: sm_90*.none.profraw: entry: [80000, 16000]
// CHECK: sm_90*.query.profraw: _Z6kernelPi: [1280000, 640000]
// CHECK: sm_90*.query.profraw: entry: [80000, 16000]
// 8 launches of 2,000 blocks of 80 threads, 40 of which take the branch.
// CHECK: sm_90*.threads.profraw: _Z6kernelPi: [1280000, 640000]
// CHECK: sm_90*.threads.profraw: entry: [80000, 16000]
// CHECK: threads.profraw: main

//--- module.cu
extern "C" __global__ void entry(int *out) {
    if (threadIdx.x < 16)
        out[threadIdx.x] = 1;
}

//--- main.cu
#include "check.h"
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

__global__ void kernel(int *out) {
    if (threadIdx.x < 40)
        out[threadIdx.x] = 1;
}

int main(int, char **argv) {
    std::string first = argv[2];
    int *out = device_ints(80);
    auto launch = [&](cudaStream_t stream) { kernel<<<2000, 80, 0, stream>>>(out); };
    if (first == "graph") {
        cudaStream_t stream;
        cudaGraph_t graph;
        cudaGraphExec_t executable;
        CHECK(cudaStreamCreate(&stream));
        CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
        launch(stream);
        CHECK(cudaStreamEndCapture(stream, &graph));
        CHECK(cudaGraphInstantiate(&executable, graph, 0));
        for (int n = 0; n < 8; n++)
            CHECK(cudaGraphLaunch(executable, stream));
        CHECK(cudaStreamSynchronize(stream));
    } else {
        cudaFuncAttributes attributes;
        if (first == "query")
            CHECK(cudaFuncGetAttributes(&attributes, kernel));
        std::vector<std::thread> threads;
        for (int n = 0; n < 8; n++)
            threads.emplace_back([&] { launch(0); });
        for (auto &thread : threads)
            thread.join();
        CHECK(cudaDeviceSynchronize());
    }
    std::stringstream bytes;
    bytes << std::ifstream(argv[1], std::ios::binary).rdbuf();
    std::string image = bytes.str();
    CUmodule module;
    CUfunction function;
    CHECK(cuModuleLoadData(&module, image.data()));
    CHECK(cuModuleGetFunction(&function, module, "entry"));
    void *arguments[] = {&out};
    CHECK(cuLaunchKernel(function, 1000, 1, 1, 80, 1, 1, 0, nullptr, arguments, nullptr));
    CHECK(cudaDeviceSynchronize());
    CUdeviceptr variable;
    unsigned long distance, count;
    CHECK(cuModuleGetGlobal(&variable, nullptr, module, "__devprof_counter_copies"));
    CHECK(cuMemcpyDtoH(&distance, variable, sizeof distance));
    CHECK(cuModuleGetGlobal(&variable, nullptr, module, "__profc_entry"));
    CHECK(cuMemcpyDtoH(&count, variable, sizeof count));
    EXPECT(count == (distance ? 0 : 80000));
    puts(distance ? "counted in copies" : "counted directly");
}
