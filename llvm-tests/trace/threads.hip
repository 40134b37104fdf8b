// Threads that launch at the same time, on their own streams and on a shared one, and exit: every call is recorded
// once, and every dispatch belongs to the call that made it, and so to its thread, even if another thread rang the
// doorbell. A second run has the same counts. Loaded as HSA's tool only, devprof does not observe the calls, and marks
// every dispatch.
//
// RUN: %hip_cxx -O2 %s -o a -pthread
// RUN: %preload DEVPROF_TRACE=x.trace ./a > threads
// RUN: %trace --summary x.trace > summary && FileCheck %s < summary
// CHECK:      calls=9217 dispatches=9217 without-call=0
// CHECK-NEXT: threads=17 dropped=0 closed=1
// CHECK-NEXT: hipLaunchKernel calls=9200 dispatches=9200 each=1..1
// CHECK-NEXT: hipMemcpy calls=1 dispatches=1 each=1..1
// CHECK-NEXT: hipMemset calls=16 dispatches=16 each=1..1
//
// The threads' own ids, with what each of them launched.
// RUN: sort threads > threads.printed
// RUN: %trace x.trace | sed -En 's/^dispatch .* thread=([0-9]+) .*/thread \1/p' | sort | uniq -c > threads.counted
// RUN: sed -E 's/^ *([0-9]+) (.*)/\2 launched \1/' threads.counted | sort | diff threads.printed -
//
// RUN: %preload DEVPROF_TRACE=again.trace ./a
// RUN: %trace --summary again.trace | diff summary -
//
// RUN: env HSA_TOOLS_LIB=%devprof_so DEVPROF_TRACE=tool.trace ./a
// RUN: %trace --summary tool.trace | FileCheck %s --check-prefix=TOOL
// RUN: %trace tool.trace | grep -c '^dispatch .* call=0 .*no-call' | FileCheck %s --check-prefix=FLAGS
// TOOL:      calls=0 dispatches=9217 without-call=9217
// TOOL-NEXT: threads=0 dropped=0 closed=1
// FLAGS: {{^}}9217{{$}}
#include "check.h"
#include <thread>
#include <unistd.h>
#include <vector>

__global__ void kernel(int *out) { atomicAdd(out, 1); }

int main() {
    int *out = device_ints(16), sums[16];
    std::vector<std::thread> threads;
    for (int n = 0; n < 16; n++)
        threads.emplace_back([=] {
            hipStream_t stream = NULL;
            if (n % 2)
                CHECK(hipStreamCreate(&stream));
            CHECK(hipMemset(out + n, 0, sizeof *out));
            for (int launch = 0; launch < 500 + 10 * n; launch++)
                kernel<<<1, 1, 0, stream>>>(out + n);
            CHECK(hipStreamSynchronize(stream));
            printf("thread %d launched %d\n", gettid(), 500 + 10 * n + 1);
        });
    for (auto &thread : threads)
        thread.join();
    CHECK(hipMemcpy(sums, out, sizeof sums, hipMemcpyDeviceToHost));
    printf("thread %d launched 1\n", gettid());
    for (int n = 0; n < 16; n++)
        if (sums[n] != 500 + 10 * n)
            return 1;
    return 0;
}
