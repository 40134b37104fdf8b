// A GPU whose memory the host cannot access (no large BAR): an access ends the process with SIGSEGV. At exit, LLVM 23's
// runtime copies counters with hipMemcpy from addresses that HIP does not know, so HIP reads them on the host. devprof
// makes the GPU copy them.
//
// REQUIRES: llvm-runtime, sim
// RUN: %hip_cxx %pgo %exact -O1 %s -o a %devprof_a
// RUN: %hip_cxx %pgo %exact -O1 %s -o peer
// RUN: env HSA_SIM_BAR=small LLVM_PROFILE_FILE=a.profraw %on_sim %ended ./a | FileCheck %s
// RUN: %counts gfx1100.a.profraw | FileCheck %s --check-prefix=COUNTS
// RUN: env HSA_SIM_BAR=small LLVM_PROFILE_FILE=peer.profraw %on_sim %ended ./peer | FileCheck %s --check-prefix=LLVM
// RUN: env HSA_SIM_BAR=large LLVM_PROFILE_FILE=large.profraw %on_sim %ended ./peer | FileCheck %s
// RUN: %counts gfx1100.large.profraw | FileCheck %s --check-prefix=COUNTS
#include "check.h"

__global__ void kernel(int *out) {
    if (threadIdx.x < 40)
        out[threadIdx.x] = 1;
}

int main() {
    kernel<<<1, 64>>>(device_ints(64));
    CHECK(hipDeviceSynchronize());
}

// CHECK:  exit 0
// LLVM:   signal SIGSEGV
// COUNTS: {{^}}_Z6kernelPi: [64, 40]{{$}}
