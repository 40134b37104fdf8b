// Snapshots of two GPUs whose caches the host does not see: while the program is running, and after it was killed, the
// profiles have the counts of the kernels that are complete.
//
// REQUIRES: gfx1100, sim
// RUN: %hip_cxx %device_pgo %exact -O1 %s -o a
// DEFINE: %{run} = env 'HSA_SIM_AGENTS=gfx1100*2' HSA_SIM_L2=writeback DEVPROF_SNAPSHOT_MS=20 %on_sim LD_PRELOAD=%devprof_so
// RUN: mkfifo running
// RUN: timeout 300 bash -uc '%{run} ./a 2> err & exec 3< running; until %counts gfx1100.default.profraw gfx1100.1.default.profraw 2> /dev/null | grep -F "_Z6kernelPi: [704, 440]"; do sleep 0.1; done; kill -KILL $!; wait $!; true'
// RUN: count 0 < err
// RUN: %counts gfx1100.default.profraw | FileCheck %s --check-prefix=FIRST
// RUN: %counts gfx1100.1.default.profraw | FileCheck %s --check-prefix=SECOND
// FIRST:  {{^}}_Z6kernelPi: [64, 40]{{$}}
// SECOND: {{^}}_Z6kernelPi: [640, 400]{{$}}
#include "check.h"
#include <fcntl.h>
#include <unistd.h>

__global__ void kernel(int *out) {
    if (threadIdx.x < 40)
        out[threadIdx.x] = 1;
}

int main() {
    for (int device = 0; device < 2; device++) {
        CHECK(hipSetDevice(device));
        int *out = device_ints(64);
        for (int launch = 0; launch < (device ? 10 : 1); launch++)
            kernel<<<1, 64>>>(out);
        CHECK(hipDeviceSynchronize());
    }
    // Opening the pipe continues when the test reads it.
    close(open("running", O_WRONLY));
    for (;;)
        pause();
}
