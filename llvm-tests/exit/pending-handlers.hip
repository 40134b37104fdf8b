// At exit devprof waits for HIP's streams, and for the handlers that HIP has registered for its signals: HIP 7.2.4 can crash
// in a handler that runs while the process destroys HIP. The handlers start late here, and only devprof waits for them
// (without devprof on the GPU model, tools/simulator/gpu-model/start.c does).
//
// REQUIRES: model
// RUN: %clang -O1 -shared -fPIC -DALONE %S/Inputs/late-handlers.c -o late.so
// RUN: %hip_cxx %pgo %exact -O1 %s -o a %devprof_a
// RUN: %hip_cxx %device_pgo %exact -O1 %s -o b
// DEFINE: %{late} = LD_PRELOAD=./late.so:%{preloaded}
// RUN: env %{late} ./a wait 2>&1 | FileCheck %s
// RUN: env %{late} ./a leave 2>&1 | FileCheck %s
// RUN: env LD_PRELOAD=./late.so:%devprof_so:%{preloaded} ./b wait 2>&1 | FileCheck %s
// RUN: env LD_PRELOAD=./late.so:%devprof_so:%{preloaded} ./b leave 2>&1 | FileCheck %s
// RUN: env %{late} HSA_TOOLS_LIB=%devprof_so DEVPROF_TRACE=trace ./b wait 2>&1 | FileCheck %s
// RUN: env %{late} HSA_TOOLS_LIB=%devprof_so DEVPROF_TRACE=trace ./b leave 2>&1 | FileCheck %s
// CHECK: handlers: {{[1-9][0-9]*}}, pending: 0{{$}}

#include "check.h"

__global__ void count(int *out) {
    atomicAdd(out, 1);
}

int main(int, char **argv) {
    int *out = device_ints(1);
    for (int n = 0; n < 100; n++)
        count<<<1, 64>>>(out);
    if (argv[1][0] == 'w')
        CHECK(hipDeviceSynchronize());
}
