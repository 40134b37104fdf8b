// With DEVPROF_TRACE_STOPPED=1: kernels one to five, of which two, three (still runs at the stop) and five are recorded.
#include "common.h"
extern "C" cudaError_t cudaProfilerStart();
extern "C" cudaError_t cudaProfilerStop();
__global__ void one() {}
__global__ void two() {}
__global__ void three(long long ns) {
    long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - start < ns);
}
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
