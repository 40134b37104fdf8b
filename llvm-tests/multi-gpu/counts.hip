// Eight GPUs in one program: each kernel's counts are in the profile of the GPU that ran it, and the sum is right. GPU n
// runs the kernel n + 1 times. Then only one GPU that is not the default one is used.
//
// REQUIRES: gfx1100, sim
// RUN: %hip_cxx %device_pgo %exact -O1 %s -o a %take_devprof %devprof_a
// RUN: env 'HSA_SIM_AGENTS=gfx1100*8' LLVM_PROFILE_FILE=all.x %on_sim ./a 0 1 2 3 4 5 6 7
// RUN: %counts gfx1100.all.x | FileCheck %s --check-prefix=FIRST
// RUN: %counts gfx1100.1.all.x | FileCheck %s --check-prefix=SECOND
// RUN: %counts gfx1100.7.all.x | FileCheck %s --check-prefix=LAST
// RUN: %counts gfx1100.all.x gfx1100.1.all.x gfx1100.2.all.x gfx1100.3.all.x gfx1100.4.all.x gfx1100.5.all.x gfx1100.6.all.x gfx1100.7.all.x | FileCheck %s --check-prefix=SUM
// FIRST:  {{^}}_Z6kernelPi: [64, 40]{{$}}
// SECOND: {{^}}_Z6kernelPi: [128, 80]{{$}}
// LAST:   {{^}}_Z6kernelPi: [512, 320]{{$}}
// SUM:    {{^}}_Z6kernelPi: [2304, 1440]{{$}}
//
// RUN: env 'HSA_SIM_AGENTS=gfx1100*3' LLVM_PROFILE_FILE=one/p.x %on_sim ./a 1
// RUN: ls one | FileCheck %s --check-prefix=ONE
// RUN: %counts one/gfx1100.p.x | FileCheck %s --check-prefix=SECOND
// ONE:     {{^}}gfx1100.p.x{{$}}
// ONE-NOT: {{.}}
//
// The shared library; a trace has the kernels of each GPU, with its number in HIP.
// RUN: %hip_cxx %device_pgo %exact -O1 %s -o b
// RUN: env 'HSA_SIM_AGENTS=gfx1100*4' LLVM_PROFILE_FILE=preload/p.x DEVPROF_TRACE=t.trace %on_sim LD_PRELOAD=%devprof_so ./b 0 3
// RUN: %counts preload/gfx1100.p.x preload/gfx1100.1.p.x | FileCheck %s --check-prefix=PRELOAD
// RUN: %devprof stats t.trace --by agent --csv | FileCheck %s --check-prefix=TRACE
// TRACE-DAG: "kernel(int*)",1,{{.*}},"GPU 0 gfx1100"
// TRACE-DAG: "kernel(int*)",4,{{.*}},"GPU 3 gfx1100"
// PRELOAD: {{^}}_Z6kernelPi: [320, 200]{{$}}
//
// LLVM's own runtime writes one file, which has the counts of the last GPU only.
// RUN: %if llvm-runtime %{ %hip_cxx %pgo %exact -O1 %s -o peer %}
// RUN: %if llvm-runtime %{ env 'HSA_SIM_AGENTS=gfx1100*8' HSA_SIM_BAR=large LLVM_PROFILE_FILE=llvm/p.x %on_sim ./peer 0 1 2 3 4 5 6 7 %}
// RUN: %if llvm-runtime %{ ls llvm | FileCheck %s --check-prefix=LLVM-FILES %}
// RUN: %if llvm-runtime %{ %counts llvm/gfx1100.p.x | FileCheck %s --check-prefix=LAST %}
// LLVM-FILES:      {{^}}gfx1100.p.x
// LLVM-FILES-NEXT: {{^}}p.x
// LLVM-FILES-NOT:  {{.}}
#include "check.h"

__global__ void kernel(int *out) {
    if (threadIdx.x < 40)
        out[threadIdx.x] = 1;
}

int main(int count, char **words) {
    for (int n = 1; n < count; n++) {
        int device = atoi(words[n]);
        CHECK(hipSetDevice(device));
        int *out = device_ints(64);
        for (int launch = 0; launch <= device; launch++)
            kernel<<<1, 64>>>(out);
        CHECK(hipGetLastError());
    }
    for (int n = 1; n < count; n++) {
        CHECK(hipSetDevice(atoi(words[n])));
        CHECK(hipDeviceSynchronize());
    }
}
