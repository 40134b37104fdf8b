// A graph that is captured from a stream and launched 100 times counts like launches. A collect call during a capture,
// which fails calls of the program's in global mode, does not break the capture; what it writes is what was counted
// before.
//
// VARIANTS: preload archive
// RUN: %{cu} graphs.cu -DDEVPROF_OPTIONAL -o graphs.o
// RUN: %{cxx} graphs.o -o out/a %{link}
// GPU: LLVM_PROFILE_FILE=graph.profraw %a
// GPU: DEVPROF_SNAPSHOT_MS=1 LLVM_PROFILE_FILE=snapshots.profraw %a
//
// CHECK: graph.profraw: main
// CHECK: sm_90.graph.profraw: _Z6kernelPi: [64]
// CHECK: sm_90.graph.profraw: _Z8capturedPi: [25600, 6400]
// CHECK: sm_90.snapshots.profraw: _Z6kernelPi: [64]
// CHECK: sm_90.snapshots.profraw: _Z8capturedPi: [25600, 6400]
// CHECK: snapshots.profraw: main
#include "check.h"
#include "devprof.h"
#include <unistd.h>

__global__ void kernel(int *out) { out[threadIdx.x] = 1; }

__global__ void captured(int *out) {
    if (threadIdx.x < 16)
        atomicAdd(out, 1);
}

int main() {
    int *out = device_ints(64);
    kernel<<<1, 64>>>(out);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemset(out, 0, sizeof *out));
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    cudaGraph_t graph;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    for (int n = 0; n < 4; n++)
        captured<<<1, 64, 0, stream>>>(out);
    devprof_collect();
    // For snapshots.
    usleep(20000);
    CHECK(cudaStreamEndCapture(stream, &graph));
    size_t nodes;
    CHECK(cudaGraphGetNodes(graph, nullptr, &nodes));
    EXPECT(nodes == 4);
    cudaGraphExec_t executable;
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    for (int n = 0; n < 100; n++)
        CHECK(cudaGraphLaunch(executable, stream));
    CHECK(cudaStreamSynchronize(stream));
    int launched;
    CHECK(cudaMemcpy(&launched, out, sizeof launched, cudaMemcpyDeviceToHost));
    EXPECT(launched == 400 * 16);
}
