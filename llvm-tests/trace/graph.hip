// The launch of a graph is one API call, to which the dispatches of all its nodes belong. The calls that were captured
// launched nothing. Most packets are written while the queue is full, and reach ROCr's hooks on another thread. A
// second run has the same counts.
//
// RUN: %hip_cxx -O2 %s -o a
// RUN: %preload DEVPROF_TRACE=one.trace ./a
// RUN: %trace --summary one.trace > one && FileCheck %s < one
// RUN: %preload DEVPROF_TRACE=two.trace ./a
// RUN: %trace --summary two.trace > two && diff one two
// RUN: %trace --calls one.trace > one && %trace --calls two.trace > two && diff one two
//
// CHECK:      calls=502 dispatches=60001 without-call=0
// CHECK-NEXT: threads=1 dropped=0 closed=1
// CHECK-NEXT: hipGraphLaunch calls=200 dispatches=60000 each=300..300
// CHECK-NEXT: hipLaunchKernel calls=301 dispatches=1 each=0..1
// CHECK-NEXT: hipMemcpy calls=1 dispatches=0 each=0..0
#include "check.h"

__global__ void kernel(int *out) { atomicAdd(out, 1); }

int main() {
    int *out;
    CHECK(hipHostMalloc((void **)&out, sizeof *out, 0));
    *out = 0;
    hipStream_t stream;
    CHECK(hipStreamCreate(&stream));
    kernel<<<1, 1, 0, stream>>>(out);
    CHECK(hipStreamSynchronize(stream));

    hipGraph_t graph;
    hipGraphExec_t exec;
    CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    for (int node = 0; node < 300; node++)
        kernel<<<1, 1, 0, stream>>>(out);
    CHECK(hipStreamEndCapture(stream, &graph));
    CHECK(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    for (int launch = 0; launch < 200; launch++)
        CHECK(hipGraphLaunch(exec, stream));
    CHECK(hipStreamSynchronize(stream));
    int sum;
    CHECK(hipMemcpy(&sum, out, sizeof sum, hipMemcpyHostToHost));
    return sum != 1 + 300 * 200;
}
