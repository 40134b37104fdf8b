// Collects before and at the end of the program, with or without devprof.
#define DEVPROF_OPTIONAL
#include <devprof.h>

#include "check.h"

__global__ void kernel(int *out) { out[threadIdx.x] = threadIdx.x; }

int main() {
    int *out = device_ints(64);
    kernel<<<1, 64>>>(out);
    printf("collect %d\n", devprof_collect());
    printf("reset %d\n", devprof_reset());
    printf("trace %d\n", devprof_trace_start() | devprof_trace_flush() | devprof_trace_stop());
    kernel<<<1, 32>>>(out);
    CHECK(hipDeviceSynchronize());
    puts(devprof_reset_counters && devprof_trace_start ? "with devprof" : "without");
}
