// The HIP stream of each call and of its dispatches: the NULL stream by its names, a thread's default stream, created
// streams, in all ways in which an API call can name one. A copy without a stream uses the NULL stream. A handle that HIP
// reuses after its stream was destroyed is another stream, also if hipDeviceReset has destroyed it. Calls for several
// devices have no stream, calls without a stream neither.
//
// RUN: %hip_cxx -O2 -Wno-deprecated-declarations %s -o a -pthread
// RUN: ./a > alone
// RUN: %preload DEVPROF_TRACE=x.trace ./a > expected && diff alone expected
// RUN: FileCheck %s --check-prefix=REUSED < expected
// RUN: %trace --streams x.trace > streams && grep -v '^reused' expected | diff - streams
// RUN: %trace x.trace | grep '^stream' | FileCheck %s
//
// With all calls, streams are the same, but some are first used by other calls.
// RUN: %preload DEVPROF_TRACE=api.trace DEVPROF_TRACE_API=1 ./a > traced && diff alone traced
// RUN: %trace --streams api.trace | FileCheck %s --check-prefix=API --match-full-lines
// RUN: %trace api.trace | grep '^stream' | FileCheck %s
//
// CHECK:      stream 1:null handle=0x0 thread=0
// CHECK-NEXT: stream 2:thread handle=0x2 thread={{[1-9]}}
// CHECK-NEXT: stream 3:created handle=0x[[FIRST:[0-9a-f]+]] thread=0
// CHECK-NEXT: stream 4:created handle=0x[[SECOND:[0-9a-f]+]] thread=0
// CHECK-NEXT: stream 5:thread handle=0x2 thread={{[1-9]}}
// CHECK-NEXT: stream 6:thread handle=0x2 thread={{[1-9]}}
// CHECK-NEXT: stream 7:created handle=0x{{.*}} thread=0
// CHECK-NOT:  {{.}}
// REUSED: reused: 1 1
//
// API:      hipHostMalloc none
// API:      hipLaunchKernel 1:null 1:null
// API:      hipStreamCreate none
// API:      hipStreamSynchronize 3:created
// API:      hipEventRecord 3:created
// API:      hipStreamDestroy 3:created
#include "check.h"
#include <hip/hip_ext.h>
#include <thread>
#include <vector>

__global__ void kernel(int *out) { atomicAdd(out, 1); }

static int *out;

// Prints what trace.py prints for a call of a function for a stream.
static void line(const char *function, const char *stream, int kernels = 1) {
    printf("%s %s", function, stream);
    for (int n = 0; n < kernels; n++)
        printf(" %s", stream);
    puts("");
}

static void launch(hipStream_t stream, const char *name) {
    void *arguments[] = {&out};
    line("hipLaunchKernel", name);
    CHECK(hipLaunchKernel((const void *)kernel, dim3(1), dim3(1), arguments, 0, stream));
}

int main() {
    CHECK(hipHostMalloc((void **)&out, 64, 0));
    void *arguments[] = {&out};
    launch(NULL, "1:null");
    launch(hipStreamLegacy, "1:null");
    launch(hipStreamPerThread, "2:thread");
    line("hipLaunchKernel_spt", "2:thread");
    CHECK(hipLaunchKernel_spt((const void *)kernel, dim3(1), dim3(1), arguments, 0, NULL));

    // A second stream has another handle, unless the first one was destroyed.
    hipStream_t stream, second;
    CHECK(hipStreamCreate(&stream));
    launch(stream, "3:created");
    CHECK(hipStreamSynchronize(stream));
    hipEvent_t event;
    CHECK(hipEventCreate(&event));
    CHECK(hipEventRecord(event, stream));
    const hipStream_t first = stream;
    CHECK(hipStreamDestroy(stream));
    CHECK(hipStreamCreateWithFlags(&second, hipStreamNonBlocking));
    const bool reused = second == first;
    launch(second, "4:created");

    // Every way to name a stream.
    hipFunction_t function;
    CHECK(hipGetFuncBySymbol(&function, (const void *)kernel));
    line("hipModuleLaunchKernel", "4:created");
    CHECK(hipModuleLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, second, arguments, NULL));
    line("hipExtModuleLaunchKernel", "4:created");
    CHECK(hipExtModuleLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, second, arguments, NULL, NULL, NULL, 0));
    hipLaunchConfig_t config = {dim3(1), dim3(1), 0, second, NULL, 0};
    line("hipLaunchKernelExC", "4:created");
    CHECK(hipLaunchKernelExC(&config, (const void *)kernel, arguments));
    HIP_LAUNCH_CONFIG drv = {1, 1, 1, 1, 1, 1, 0, second, NULL, 0};
    line("hipDrvLaunchKernelEx", "4:created");
    CHECK(hipDrvLaunchKernelEx(&drv, function, arguments, NULL));
    hipLaunchParams one = {(void *)kernel, dim3(1), dim3(1), arguments, 0, second};
    line("hipExtLaunchMultiKernelMultiDevice", "none");
    CHECK(hipExtLaunchMultiKernelMultiDevice(&one, 1, 0));
    int host = 0;
    line("hipMemcpy", "1:null", 0);
    CHECK(hipMemcpy(&host, out, 4, hipMemcpyDefault));
    line("hipMemcpyAsync", "4:created", 0);
    CHECK(hipMemcpyAsync(&host, out, 4, hipMemcpyDefault, second));
    line("hipMemcpy_spt", "2:thread", 0);
    CHECK(hipMemcpy_spt(&host, out, 4, hipMemcpyDefault));
    line("hipMemsetAsync", "1:null", 0);
    CHECK(hipMemsetAsync(out, 0, 4, NULL));
    line("hipMemsetAsync_spt", "2:thread", 0);
    CHECK(hipMemsetAsync_spt(out, 0, 4, NULL));
    CHECK(hipDeviceSynchronize());

    // The kernels of a graph have the stream of its launch, also those of parallel branches.
    hipGraph_t graph;
    hipGraphExec_t executable;
    hipGraphNode_t nodes[4];
    CHECK(hipGraphCreate(&graph, 0));
    hipKernelNodeParams params = {};
    params.func = (void *)kernel, params.gridDim = dim3(1), params.blockDim = dim3(1), params.kernelParams = arguments;
    for (auto &node : nodes)
        CHECK(hipGraphAddKernelNode(&node, graph, NULL, 0, &params));
    CHECK(hipGraphInstantiate(&executable, graph, NULL, NULL, 0));
    line("hipGraphLaunch", "4:created", 4);
    CHECK(hipGraphLaunch(executable, second));
    CHECK(hipStreamSynchronize(second));

    // Threads have their own default streams, and share the others.
    for (const char *own : {"5:thread", "6:thread"})
        std::thread([&] {
            launch(hipStreamPerThread, own);
            launch(second, "4:created");
            launch(NULL, "1:null");
            CHECK(hipStreamSynchronize(hipStreamPerThread));
        }).join();

    // hipDeviceReset destroys all streams.
    CHECK(hipDeviceReset());
    bool again = false;
    std::vector<hipStream_t> streams(64);
    for (auto &other : streams) {
        CHECK(hipStreamCreateWithPriority(&other, hipStreamDefault, 0));
        if (other == second) {
            again = true;
            CHECK(hipHostMalloc((void **)&out, 64, 0));
            launch(other, "7:created");
            CHECK(hipStreamSynchronize(other));
            break;
        }
    }
    printf("reused: %d %d\n", reused, again);
    return 0;
}
