// At exit devprof waits for HIP's streams. HIP handles the end of a wait in a handler on one of ROCr's threads. A
// process that exits while the handler runs crashes in it (one of six runs did before devprof waited for the
// handlers).

// RUN: %hip_cxx %pgo %exact %s -o a %devprof_a
// RUN: env MALLOC_PERTURB_=85 bash -euc 'for n in {1..60}; do ./a; done'

#include "check.h"

__global__ void count(int *out) {
    atomicAdd(out, 1);
}

int main() {
    count<<<1, 64>>>(device_ints(1));
    CHECK(hipDeviceSynchronize());
}
