// 1,000 kernels, a pause of 1 s, then SIGKILL: all of them are in the trace.
#include "common.h"
#include <signal.h>
__global__ void early() {}
int main() {
    for (int n = 0; n < 1000; n++)
        early<<<1, 1>>>();
    CHECK(cudaDeviceSynchronize());
    sleep(1);
    kill(getpid(), SIGKILL);
}
