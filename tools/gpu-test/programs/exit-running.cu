// A kernel that still runs when the program exits is counted to its end, on each kind of stream. If it takes longer than
// DEVPROF_SYNC_MS, that is reported.
//
// VARIANTS: preload inject archive
// UNEQUAL: sm_90.limit.profraw: flags in registers of a kernel that still runs are missing
// GPU: for stream in null blocking nonblocking; do LLVM_PROFILE_FILE=$stream.profraw %a $stream 300; done
// GPU: DEVPROF_SYNC_MS=200 LLVM_PROFILE_FILE=limit.profraw %a nonblocking 2000
//
// CHECK: stderr: devprof: kernels still run after 200 ms (DEVPROF_SYNC_MS): what they count from now on is lost
// CHECK: blocking.profraw: main
// CHECK: limit.profraw: main
// CHECK: nonblocking.profraw: main
// CHECK: null.profraw: main
// CHECK: sm_90.blocking.profraw: _Z4spinPiyPVi: [256, 64]
// The entry was counted when the kernel began.
// CHECK: sm_90.limit.profraw: _Z4spinPiyPVi: [256, 0]
// CHECK: sm_90.nonblocking.profraw: _Z4spinPiyPVi: [256, 64]
// CHECK: sm_90.null.profraw: _Z4spinPiyPVi: [256, 64]
#include "check.h"
#include <string.h>

static __device__ __attribute__((no_profile_instrument_function)) unsigned long long nanoseconds() {
    unsigned long long time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
    return time;
}

// Not instrumented, so that the loop is not counted.
static __device__ __attribute__((no_profile_instrument_function, noinline)) void wait(unsigned long long duration) {
    unsigned long long start = nanoseconds();
    while (nanoseconds() - start < duration) {
    }
}

__global__ void spin(int *out, unsigned long long duration, volatile int *started) {
    *started = 1;
    wait(duration);
    if (threadIdx.x < 16)
        atomicAdd(out, 1);
}

int main(int, char **argv) {
    int *out = device_ints(1);
    cudaStream_t stream = nullptr;
    if (!strcmp(argv[1], "blocking"))
        CHECK(cudaStreamCreate(&stream));
    if (!strcmp(argv[1], "nonblocking"))
        CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    int *started;
    CHECK(cudaMallocHost(&started, sizeof *started));
    *started = 0;
    spin<<<4, 64, 0, stream>>>(out, atoi(argv[2]) * 1000000ull, started);
    CHECK(cudaGetLastError());
    while (!*(volatile int *)started) {
    }
}
