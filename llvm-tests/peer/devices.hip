// LLVM 23 has two tests for several GPUs, which need a machine with two: one uses the default GPU, one another. Here are
// their situations, on two simulated GPUs, with LLVM's runtime (whose messages LLVM's tests check) and with devprof.
//
// REQUIRES: gfx1100, llvm-runtime, sim
// DEFINE: %{run} = env 'HSA_SIM_AGENTS=gfx1100*2' HSA_SIM_BAR=large LLVM_PROFILE_VERBOSE=1 LLVM_PROFILE_FILE
// RUN: %hip_cxx %pgo %exact -O1 %s -o peer
// RUN: %hip_cxx %pgo %exact -O1 %s -o own %devprof_a
// RUN: bash -euc 'for device in 0 1; do %{run}=peer-$device.x %on_sim ./peer $device; done' > peer.out 2>&1
// RUN: FileCheck %s --check-prefix=PEER < peer.out
// RUN: bash -euc 'for device in 0 1; do %{run}=own-$device.x %on_sim ./own $device; done' > own.out 2>&1
// RUN: not grep -E "^devprof: .*(lost|failed)" own.out
// RUN: bash -euc 'for way in peer own; do for device in 0 1; do %counts gfx1100.$way-$device.x; done; done' | FileCheck %s
// PEER:      Collecting static profile data from device 0
// PEER:      Copied device sections:
// PEER:      Skipping unused device 1
// PEER:      device bounds already drained, skipping
// PEER:      walk complete: agents={{[0-9]+}} pairs={{[0-9]+}} found={{[1-9][0-9]*}} drained={{[0-9]+}}
// PEER:      {{^}}right
// PEER:      Skipping unused device 0
// PEER:      Collecting static profile data from device 1
// PEER:      Copied device sections:
// PEER:      device bounds already drained, skipping
// PEER:      walk complete: agents={{[0-9]+}} pairs={{[0-9]+}} found={{[1-9][0-9]*}} drained={{[0-9]+}}
// PEER:      {{^}}right
// CHECK-COUNT-4: {{^}}_Z4fillPiii: [64, 32]{{$}}
// CHECK-NOT: {{.}}
#include "check.h"

__global__ void fill(int *out, int value, int count) {
    int n = blockIdx.x * blockDim.x + threadIdx.x;
    if (n < count)
        out[n] = value;
}

int main(int, char **words) {
    CHECK(hipSetDevice(atoi(words[1])));
    int *out = device_ints(32), host[32];
    fill<<<1, 64>>>(out, 99, 32);
    CHECK(hipMemcpy(host, out, sizeof host, hipMemcpyDeviceToHost));
    for (int value : host)
        if (value != 99)
            return 1;
    puts("right");
}
