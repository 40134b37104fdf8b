// With DEVPROF_TRACE_STOPPED=1: kernels one to five, of which two, three (still runs at the stop) and five are recorded.
//
// VARIANTS: plain+preload
// REQUIRES: cupti
// GPU: . $ROOT/lib/trace.sh
// GPU: traced switch env DEVPROF_TRACE_STOPPED=1 %a; for n in one two three four five six; do kernels $n; done
// GPU: echo "starts and stops: $(has '"type":"recording"')"
// cudaProfilerStart has no effect in a trace that does not begin stopped.
// GPU: traced noswitch %a; kernels two; kernels six
//
// CHECK: stdout: switch: exit status 0
// CHECK: stdout: kernels one: 0
// CHECK: stdout: kernels two: 1
// CHECK: stdout: kernels three: 1
// CHECK: stdout: kernels four: 0
// CHECK: stdout: kernels five: 1
// CHECK: stdout: kernels six: 0
// CHECK: stdout: starts and stops: 5
// CHECK: stdout: noswitch: exit status 0
// CHECK: stdout: kernels two: 1
// CHECK: stdout: kernels six: 0
#include "trace.h"
extern "C" cudaError_t cudaProfilerStart();
extern "C" cudaError_t cudaProfilerStop();
__global__ void one() {}
__global__ void two() {}
__global__ void three(long long ns) { wait_for(ns); }
__global__ void four() {}
__global__ void five() {}
__global__ void six() {}
int main() {
    one<<<1, 1>>>();
    devprof("devprof_trace_start");
    two<<<1, 1>>>();
    three<<<1, 1>>>(50000000);
    devprof("devprof_trace_stop");
    four<<<1, 1>>>();
    CHECK(cudaDeviceSynchronize());
    cudaProfilerStart();
    five<<<1, 1>>>();
    cudaProfilerStop();
    six<<<1, 1>>>();
    CHECK(cudaDeviceSynchronize());
    return 0;
}
