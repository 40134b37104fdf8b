// 1,000 kernels, a pause of 1 s, then SIGKILL: all of them are in the trace.
//
// VARIANTS: plain+preload
// REQUIRES: cupti
// GPU: . $ROOT/lib/trace.sh
// GPU: traced kill %a; kernels early
//
// CHECK: stdout: kill: exit status 137
// CHECK: stdout: kernels early: 1000
#include "check.h"
#include <signal.h>
#include <unistd.h>
__global__ void early() {}
int main() {
    for (int n = 0; n < 1000; n++)
        early<<<1, 1>>>();
    CHECK(cudaDeviceSynchronize());
    sleep(1);
    kill(getpid(), SIGKILL);
}
