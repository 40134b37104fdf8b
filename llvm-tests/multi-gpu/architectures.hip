// A program with code for three architectures, on a machine with GPUs of two of them: one profile for each GPU, with the
// name of its architecture.
//
// REQUIRES: gfx1100, sim
// RUN: %hip_cxx -Xarch_device -nogpuinc --offload-arch=gfx1101 --offload-arch=gfx1102 %device_pgo %exact -O1 %s -o a %take_devprof %devprof_a
// RUN: env HSA_SIM_AGENTS=gfx1100,gfx1102,gfx1102 LLVM_PROFILE_FILE=out/p.x %on_sim ./a
// RUN: ls out | FileCheck %s --check-prefix=FILES
// RUN: %counts out/gfx1100.p.x | FileCheck %s --check-prefix=FIRST
// RUN: %counts out/gfx1102.p.x out/gfx1102.1.p.x | FileCheck %s --check-prefix=OTHERS
// FILES:      {{^}}gfx1100.p.x
// FILES-NEXT: gfx1102.1.p.x
// FILES-NEXT: gfx1102.p.x
// FILES-NOT:  {{.}}
// FIRST:  {{^}}_Z6kernelPi: [64, 40]{{$}}
// OTHERS: {{^}}_Z6kernelPi: [320, 200]{{$}}
#include "kernel.h"

#ifndef __HIP_DEVICE_COMPILE__
int main() {
    for (int device = 0; device < 3; device++) {
        CHECK(hipSetDevice(device));
        int *out = device_ints(64);
        for (int launch = 0; launch <= device; launch++)
            kernel<<<1, 64>>>(out);
        CHECK(hipDeviceSynchronize());
    }
}
#endif
