// Many launches. Launches per thread and threads are the arguments.
//
// VARIANTS: plain+one plain+four
// REQUIRES: cupti
// GPU: %if one %{ export THREADS=1 %}
// GPU: %if four %{ export THREADS=4 %}
// GPU: . $ROOT/lib/trace.sh
// GPU: for n in 1 2 3; do traced many %a 50000 $THREADS; kernels empty $((50000 * THREADS)); calls cudaLaunchKernel $((50000 * THREADS)); correlated; clocks; done | sort | uniq -c
// GPU: traced stopped env DEVPROF_TRACE_STOPPED=1 %a 50000 $THREADS; kernels empty; rm -f *.trace *.jsonl
//
// CHECK: stdout: 3 calls cudaLaunchKernel: 1
// CHECK: stdout: 3 kernels empty: 1
// CHECK: stdout: 3 many: exit status 0
// CHECK: stdout: 3 on another clock than the trace's: 0
// CHECK: stdout: 3 without a call: 0
// CHECK: stdout: stopped: exit status 0
// CHECK: stdout: kernels empty: 0
#include "check.h"
#include <thread>
#include <vector>
__global__ void empty() {}
int main(int argc, char **argv) {
    int launches = atoi(argv[1]), threads = atoi(argv[2]);
    empty<<<1, 1>>>();
    CHECK(cudaDeviceSynchronize());
    std::vector<std::thread> all;
    for (int n = 0; n < threads; n++)
        all.emplace_back([&] {
            for (int n = 0; n < launches; n++)
                empty<<<1, 1, 0, cudaStreamPerThread>>>();
            CHECK(cudaStreamSynchronize(cudaStreamPerThread));
        });
    for (auto &thread : all)
        thread.join();
    return 0;
}
