// Graphs that are launched in roctx ranges: the ranges contain the calls that launch them, and each kernel of a graph belongs
// to its call, although it runs when the range has ended. The nodes' own calls, at the capture, have no dispatches.
//
// RUN: %hip_cxx -O1 %s -o a
// RUN: %preload DEVPROF_TRACE=a.trace DEVPROF_TRACE_MARKERS=1 ./a
// RUN: %trace --ranges a.trace | FileCheck %s --match-full-lines --strict-whitespace
// RUN: %trace --summary a.trace | FileCheck %s --check-prefix=SUMMARY
//
//CHECK:depth=0 'capture' hipLaunchKernel:0 hipLaunchKernel:0 hipLaunchKernel:0
//CHECK-NEXT:depth=0 'step 1' hipGraphLaunch:3
//CHECK-NEXT:depth=1 'inner' hipGraphLaunch:3 hipLaunchKernel:1
//CHECK-NEXT:depth=0 'step 2' hipGraphLaunch:3 hipGraphLaunch:3
//CHECK-NEXT:depth=1 'inner' hipGraphLaunch:3 hipLaunchKernel:1
//CHECK-NOT:{{.}}
// SUMMARY: dispatches=18 without-call=0
#include "check.h"

extern "C" __attribute__((weak)) int roctxRangePushA(const char *message);
extern "C" __attribute__((weak)) int roctxRangePop(void);

__global__ void wait(volatile int *go) {
    while (!*go)
        __builtin_amdgcn_s_sleep(1);
}

__global__ void kernel(int *out) { atomicAdd(out, 1); }

int main() {
    int *memory;
    CHECK(hipHostMalloc((void **)&memory, 2 * sizeof *memory, 0));
    memory[0] = memory[1] = 0;
    hipStream_t stream;
    hipGraph_t graph;
    hipGraphExec_t exec;
    CHECK(hipStreamCreate(&stream));
    roctxRangePushA("capture");
    CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    for (int node = 0; node < 3; node++)
        kernel<<<1, 1, 0, stream>>>(memory + 1);
    CHECK(hipStreamEndCapture(stream, &graph));
    CHECK(hipGraphInstantiate(&exec, graph, NULL, NULL, 0));
    roctxRangePop();
    // No kernel runs before all ranges have ended.
    wait<<<1, 1, 0, stream>>>(memory);
    const char *const names[] = {"step 1", "step 2"};
    for (int step = 0; step < 2; step++) {
        roctxRangePushA(names[step]);
        for (int launch = 0; launch <= step; launch++)
            CHECK(hipGraphLaunch(exec, stream));
        roctxRangePushA("inner");
        CHECK(hipGraphLaunch(exec, stream));
        kernel<<<1, 1, 0, stream>>>(memory + 1);
        roctxRangePop();
        roctxRangePop();
    }
    __atomic_store_n(memory, 1, __ATOMIC_SEQ_CST);
    CHECK(hipStreamSynchronize(stream));
    return memory[1] != 17;
}
