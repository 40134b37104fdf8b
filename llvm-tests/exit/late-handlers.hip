// HIP 7.2.4 crashes if a handler that it has registered for a signal starts while the process destroys HIP. On the GPU model
// and on the simulator it cannot crash (tools/simulator/gpu-model/start.c, tools/simulator/hsa-sim/src/signals/exit.rs), with and without
// LLVM's collector, linked with HIP or not, and whether or not the program has waited for its kernels.
//
// REQUIRES: llvm-runtime, model, sim
// RUN: %clang -O1 -shared -fPIC %S/Inputs/late-handlers.c -o late.so
// RUN: %hip_cxx -O1 -fPIC -c %s -o a.o
// RUN: %hip_cxx --hip-link a.o -o plain
// RUN: %hip_cxx --hip-link -shared a.o -o liblaunch.so
// RUN: %clang -O1 -DOPENS -x c++ %s -o opens -lstdc++
// RUN: %hip_cxx %pgo %exact -O1 %s -o peer
// DEFINE: %{run} = bash -euc 'for p in ./plain ./opens; do $p wait; $p leave; done'
// DEFINE: %{peer} = bash -euc './peer wait; ./peer leave'
//
// RUN: env LD_PRELOAD=./late.so:%{preloaded} %{run} 2>&1 | FileCheck %s
// RUN: %on_sim LD_PRELOAD=./late.so %{run} 2>&1 | FileCheck %s
// CHECK-COUNT-4: {{^}}handlers: {{[1-9][0-9]*}}, pending: 0{{$}}
// RUN: env LD_PRELOAD=./late.so:%{preloaded} %{peer} 2>&1 | FileCheck %s --check-prefix=PEER
// RUN: %on_sim HSA_SIM_BAR=large LD_PRELOAD=./late.so %{peer} 2>&1 | FileCheck %s --check-prefix=PEER
// PEER-COUNT-2: {{^}}handlers: {{[1-9][0-9]*}}, pending: 0{{$}}
#ifdef OPENS
#include <dlfcn.h>
#include <stdio.h>

int main(int, char **argv) {
    void *library = dlopen("./liblaunch.so", RTLD_NOW);
    if (!library)
        return puts(dlerror()), 1;
    return ((int (*)(const char *))dlsym(library, "launch"))(argv[1]);
}
#else
#include "check.h"

__global__ void count(int *out) {
    atomicAdd(out, 1);
}

// After as many kernels, HIP registers a handler when it waits for them.
extern "C" int launch(const char *how) {
    int *out = device_ints(1);
    for (int n = 0; n < 100; n++)
        count<<<1, 64>>>(out);
    if (how[0] == 'w')
        CHECK(hipDeviceSynchronize());
    return 0;
}

int main(int, char **argv) {
    return launch(argv[1]);
}
#endif
