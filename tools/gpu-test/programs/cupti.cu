// Where CUPTI is found, and what happens without it: the preloaded library collects, and by default does not search for it;
// the archive prints one line, and the program runs as usual.
//
// VARIANTS: missing without default inject+found disabled archive
// REQUIRES: cupti || !found
// GPU: %if missing || archive %{ export DEVPROF_CUPTI=/nonexistent/libcupti.so %}
// GPU: %if without %{ export DEVPROF_CUPTI=none %}
// The library that is found is the one next to the CUDA runtime.
// GPU: %if default || found %{ unset DEVPROF_CUPTI %}
// GPU: %if disabled %{ export DEVPROF_DISABLE=1 %}
// GPU: %a
//
// ARCHIVE: stderr: devprof: cannot observe CUDA modules, so their counters are lost: CUPTI cannot be used: DEVPROF_CUPTI: {{.*}}libcupti.so: cannot open shared object file: No such file or directory; or preload libdevprof.so {{.*}}
// DISABLED-NOT: {{.}}
// FOUND: sm_90.default.profraw: _Z6kernelPi: [64]
// MISSING: sm_90.default.profraw: _Z6kernelPi: [64]
// WITHOUT: sm_90.default.profraw: _Z6kernelPi: [64]
// DEFAULT: sm_90.default.profraw: _Z6kernelPi: [64]
#include "check.h"

__global__ void kernel(int *out) { out[threadIdx.x] = 1; }

int main() {
    kernel<<<1, 64>>>(device_ints(64));
    CHECK(cudaDeviceSynchronize());
}
