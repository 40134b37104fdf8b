// Where CUPTI is found, and what happens without it: the preloaded library collects, and by default does not search for it;
// the archive prints one line, and the program runs as usual.
//
// VARIANTS: missing without default inject+found disabled archive+missing
// ENV[missing]: DEVPROF_CUPTI=/nonexistent/libcupti.so
// ENV[without]: DEVPROF_CUPTI=none
// ENV[default]: DEVPROF_CUPTI
// Next to the CUDA runtime.
// ENV[found]: DEVPROF_CUPTI
// ENV[disabled]: DEVPROF_DISABLE=1
// CUPTI[found]: needed
// STDERR[archive]: devprof: cannot observe CUDA modules, so their counters are lost: CUPTI cannot be used: DEVPROF_CUPTI: .*libcupti.so: cannot open shared object file: No such file or directory; or preload libdevprof.so .*
// COUNTS[found]: sm_90 _Z6kernelPi: [64]
// COUNTS[missing,!archive]: sm_90 _Z6kernelPi: [64]
// COUNTS[without]: sm_90 _Z6kernelPi: [64]
// COUNTS[default]: sm_90 _Z6kernelPi: [64]
#include "check.h"

__global__ void kernel(int *out) { out[threadIdx.x] = 1; }

int main() {
    kernel<<<1, 64>>>(device_ints(64));
    CHECK(cudaDeviceSynchronize());
}
