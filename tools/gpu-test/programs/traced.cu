// A trace of an instrumented program: it has the program's kernels and copies, each with its call, and none of devprof's
// own. The counts are those of a program without a trace, in copies of the counters. The first launch, which sets the
// copies up, launches a kernel or a graph.
//
// VARIANTS: preload inject
// UNEQUAL: *: it reads where the copies of the counters are
// REQUIRES: cupti
// RUN: %{cu} second.cu -fPIC -o second.o
// RUN: %{cxx} second.o -shared -o out/libsecond.so %{link}
// GPU: . $ROOT/lib/trace.sh
// GPU: for first in kernel graph; do for api in '' 1; do
// GPU: traced $first$api env DEVPROF_TRACE_COPIES=1 ${api:+DEVPROF_TRACE_API=1} LLVM_PROFILE_FILE=$first$api.profraw %a $PROGRAM/libsecond.so $first
// GPU: kernels ''; copies ''; copies 'device_to_host","size":4096,'; copies 'device_to_host","size":8,'; copies 'fill","size":4096,'; correlated
// GPU: done; done | sort | uniq -c
//
// CHECK: stdout: 4 copies : 4
// CHECK: stdout: 4 copies device_to_host","size":4096,: 1
// CHECK: stdout: 4 copies device_to_host","size":8,: 2
// CHECK: stdout: 4 copies fill","size":4096,: 1
// CHECK: stdout: 4 counted in copies
// CHECK: stdout: 1 graph1: exit status 0
// CHECK: stdout: 1 graph: exit status 0
// CHECK: stdout: 1 kernel1: exit status 0
// CHECK: stdout: 1 kernel: exit status 0
// CHECK: stdout: 4 kernels : 15
// CHECK: stdout: 4 without a call: 0
// CHECK: graph.profraw: {{(no )?main}}
// CHECK: graph1.profraw: {{(no )?main}}
// CHECK: kernel.profraw: {{(no )?main}}
// CHECK: kernel1.profraw: {{(no )?main}}
// In each of the 4 runs: 3 launches by the program, a graph of 5 twice, and 2 by the library.
// CHECK: sm_90.*.profraw: _Z5firstPi: [3328, 208]
// CHECK: sm_90.*.profraw: _Z6secondPi: [256, 16]

//--- second.cu
__global__ void second(int *out) {
    if (threadIdx.x < 2)
        out[threadIdx.x] = 1;
}
extern "C" const void *second_kernel() { return (const void *)second; }
extern "C" void launch_second(int *out) { second<<<1, 32>>>(out); }

//--- main.cu
#include "check.h"
#include <dlfcn.h>
#include <string.h>

__global__ void first(int *out) {
    if (threadIdx.x < 4)
        out[threadIdx.x] = 1;
}

// Whether a kernel's module has copies: the variable of the device runtime begins with their distance from the counters.
static bool has_copies(const void *kernel) {
    cudaFunction_t function;
    CUmodule module;
    CUdeviceptr variable;
    unsigned long distance;
    CHECK(cudaGetFuncBySymbol(&function, kernel));
    CHECK(cuFuncGetModule(&module, (CUfunction)function));
    CHECK(cuModuleGetGlobal(&variable, nullptr, module, "__devprof_counter_copies"));
    CHECK(cuMemcpyDtoH(&distance, variable, sizeof distance));
    return distance != 0;
}

static void launch_graph(int *out) {
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int n = 0; n < 5; n++)
        first<<<1, 64, 0, stream>>>(out);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    for (int n = 0; n < 2; n++)
        CHECK(cudaGraphLaunch(executable, stream));
    CHECK(cudaStreamSynchronize(stream));
}

int main(int, char **argv) {
    bool graph_first = !strcmp(argv[2], "graph");
    static int host[1024];
    int *out = device_ints(1024);
    if (graph_first)
        launch_graph(out);
    for (int n = 0; n < 3; n++)
        first<<<1, 64>>>(out);
    if (!graph_first)
        launch_graph(out);
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    EXPECT(library);
    auto launch = (void (*)(int *))dlsym(library, "launch_second");
    auto kernel = (const void *(*)())dlsym(library, "second_kernel");
    EXPECT(launch && kernel);
    for (int n = 0; n < 2; n++)
        launch(out);
    CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
    EXPECT(host[3] == 1);
    bool all = has_copies((const void *)first) && has_copies(kernel());
    puts(all ? "counted in copies" : "counted directly");
}
