// A kernel that still runs when the program exits is counted to its end, on each kind of stream. If it takes longer than
// DEVPROF_SYNC_MS, that is reported.
//
// VARIANTS: preload inject archive
// RUN: for stream in null blocking nonblocking; do LLVM_PROFILE_FILE=$stream.profraw %a $stream 300; done
// RUN: DEVPROF_SYNC_MS=200 LLVM_PROFILE_FILE=limit.profraw %a nonblocking 2000
// STDERR: devprof: kernels still run after 200 ms \(DEVPROF_SYNC_MS\): what they count from now on is lost
// COUNTS: sm_90.null.profraw _Z4spinPiyPVi: [256, 64]
// COUNTS: sm_90.blocking.profraw _Z4spinPiyPVi: [256, 64]
// COUNTS: sm_90.nonblocking.profraw _Z4spinPiyPVi: [256, 64]
// The entry was counted when the kernel began.
// COUNTS: sm_90.limit.profraw _Z4spinPiyPVi: [256, 0]
// HOST: null.profraw
// HOST: blocking.profraw
// HOST: nonblocking.profraw
// HOST: limit.profraw
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
