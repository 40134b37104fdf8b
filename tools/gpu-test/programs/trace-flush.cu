// What is in the trace after a flush, while another thread launches: argument 1 is the trace, which is copied to argument 2.
//
// VARIANTS: plain+preload
// REQUIRES: cupti
// GPU: . $ROOT/lib/trace.sh
// GPU: traced flush %a flush.trace flushed.trace; kernels before; name=flushed; exported; kernels before; kernels spin
//
// CHECK: stdout: flush: exit status 0
// CHECK: stdout: kernels before: 1000
// CHECK: stdout: kernels before: 1000
// CHECK: stdout: kernels spin: 1
#include "trace.h"
#include <atomic>
#include <string>
#include <thread>
__global__ void before() {}
__global__ void other() {}
int main(int argc, char **argv) {
    std::atomic<bool> stop{false};
    CHECK(cudaFree(nullptr));
    std::thread thread([&] {
        while (!stop) {
            other<<<1, 1, 0, cudaStreamPerThread>>>();
            usleep(100);
        }
    });
    for (int n = 0; n < 1000; n++)
        before<<<1, 1>>>();
    spin<<<1, 1>>>(20000000);
    devprof("devprof_trace_flush");
    if (system((std::string("cp ") + argv[1] + " " + argv[2]).c_str()))
        return 1;
    stop = true;
    thread.join();
    CHECK(cudaDeviceSynchronize());
    return 0;
}
