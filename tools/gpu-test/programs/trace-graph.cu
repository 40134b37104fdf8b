// A graph of 2,000 kernels in four branches and a copy and a fill, launched 3 times: 6,000 kernels of 3 calls.
//
// VARIANTS: plain+preload
// REQUIRES: cupti
// GPU: . $ROOT/lib/trace.sh
// GPU: traced graph env DEVPROF_TRACE_COPIES=1 %a
// GPU: kernels node; calls cudaGraphLaunch; copies fill; copies 'device_to_device","size":4,'; correlated; clocks
//
// CHECK: stdout: sum 64000
// CHECK: stdout: graph: exit status 0
// CHECK: stdout: kernels node: 6000
// CHECK: stdout: calls cudaGraphLaunch: 3
// CHECK: stdout: copies fill: 3
// CHECK: stdout: copies device_to_device","size":4,: 3
// CHECK: stdout: without a call: 0
// CHECK: stdout: on another clock than the trace's: 0
#include "check.h"
__global__ void node(int *p) { atomicAdd(p, 1); }
int main() {
    int *d, host = 0;
    CHECK(cudaMalloc(&d, 4096));
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    cudaStream_t stream, branches[4];
    cudaEvent_t fork, join;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(cudaMemsetAsync(d, 0, 4096, stream));
    CHECK(cudaEventRecord(fork, stream));
    for (auto &branch : branches) {
        CHECK(cudaStreamCreateWithFlags(&branch, cudaStreamNonBlocking));
        CHECK(cudaStreamWaitEvent(branch, fork, 0));
        for (int n = 0; n < 500; n++)
            node<<<1, 32, 0, branch>>>(d);
        CHECK(cudaEventRecord(join, branch));
        CHECK(cudaStreamWaitEvent(stream, join, 0));
    }
    CHECK(cudaMemcpyAsync(d + 100, d, 4, cudaMemcpyDeviceToDevice, stream));
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    for (int n = 0; n < 3; n++)
        CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(&host, d, 4, cudaMemcpyDeviceToHost));
    printf("sum %d\n", host);
    return host != 2000 * 32;
}
