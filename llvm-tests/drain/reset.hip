// __llvm_profile_reset_counters also resets the device's counters if the program is linked with --wrap: no file that is
// written later has counts from before the reset. The reset includes modules that were unloaded before, and waits for
// running kernels. LLVM 23's own function only resets the host's counters. devprof_reset_counters only resets the
// devices'.
//
// REQUIRES: llvm-runtime, sim
// RUN: %hip_cxx %device_pgo %exact -O2 %module module.hip -o module.hsaco
// RUN: %hip_cxx %pgo %exact -O2 main.hip -o a -Wl,--wrap=__llvm_profile_reset_counters %devprof_a
// RUN: env LLVM_PROFILE_FILE=a.profraw ./a 2> err && count 0 < err
// RUN: %counts gfx1100.a.profraw gfx1100.1.a.profraw | FileCheck %s
// RUN: %counts a.profraw | FileCheck %s --check-prefix=HOST
// RUN: ls | grep -c profraw | FileCheck %s --check-prefix=FILES
//
// The uniform counters are reset, too: 3 waves counted in the second launch.
// RUN: %profraw gfx1100.a.profraw > raw && %profraw gfx1100.1.a.profraw >> raw && FileCheck %s --check-prefix=UNIFORM < raw
//
// CHECK:      {{^}}_Z6beforePi: [0, 0]{{$}}
// CHECK-NEXT: {{^}}_Z6kernelPi: [96, 40]{{$}}
// CHECK-NEXT: {{^}}loaded: [0]{{$}}
// CHECK-NOT:  {{.}}
// HOST:       {{^}}main.hip:_ZL6launchPii: [1]{{$}}
// FILES:      {{^}}3{{$}}
// UNIFORM-DAG: record {{.}}: counters [96, 40] uniform [96, 32] wave size 32
// UNIFORM-DAG: record {{.}}: counters [0] uniform [0] wave size 32
//
// A program that uses HSA directly, on ROCr and on the simulator, where the host cannot access the GPU's memory. The
// kernel launched before the reset is still running when the reset is called.
// RUN: mkdir hsa && cd hsa
// RUN: %hip_cxx %device_pgo %exact -O2 %module %inputs/hsa-queue-program/module.hip -o module.hsaco
// RUN: %clang -O1 -Wall -I%inputs %inputs/hsa-queue-program/host.c -o a -lhsa-runtime64
// RUN: env LLVM_PROFILE_FILE=rocr.profraw %preload ./a reset 2000 | FileCheck %s --check-prefix=PURE
// RUN: %counts gfx1100.rocr.profraw | FileCheck %s --check-prefix=PURE-COUNTS
// RUN: env LLVM_PROFILE_FILE=sim.profraw %on_sim LD_PRELOAD=%devprof_so ./a reset 2000 | FileCheck %s --check-prefix=PURE
// RUN: %counts gfx1100.sim.profraw | FileCheck %s --check-prefix=PURE-COUNTS
// RUN: cd ..
// PURE:        reset: 0
// PURE-COUNTS: {{^}}entry: [64, 640]{{$}}
//
// A pool keeps what was added to it before the reset, for the device and for the host.
// RUN: env LLVM_PROFILE_FILE=pool-%m.profraw ./a
// RUN: %counts gfx1100.pool-*.profraw | FileCheck %s --check-prefix=POOL
// POOL: {{^}}_Z6kernelPi: [160, 80]{{$}}
//
// Only the devices are reset: no count of the host is lost.
// RUN: %hip_cxx %pgo %exact -O2 main.hip -o alone -DRESET=devprof_reset_counters %devprof_a
// RUN: env LLVM_PROFILE_FILE=alone.profraw ./alone
// RUN: %counts gfx1100.alone.profraw gfx1100.1.alone.profraw | FileCheck %s
// RUN: %counts alone.profraw | FileCheck %s --check-prefix=ALONE
// ALONE: {{^}}main.hip:_ZL6launchPii: [2]{{$}}
//
// A byte of coverage is 0xff until its code has run.
// RUN: %hip_cxx -fprofile-generate %exact -mllvm -pgo-function-entry-coverage -O2 main.hip -o bytes -Wl,--wrap=__llvm_profile_reset_counters %devprof_a
// RUN: env LLVM_PROFILE_FILE=bytes.profraw ./bytes
// RUN: %counts gfx1100.bytes.profraw > counts && %counts gfx1100.1.bytes.profraw >> counts && FileCheck %s --check-prefix=BYTES < counts
// BYTES-DAG: {{^}}_Z6kernelPi: [1]{{$}}
// BYTES-DAG: {{^}}_Z6beforePi: [0]{{$}}
//
// LLVM's own runtime: the device's counts include both launches.
// RUN: %hip_cxx %pgo %exact -O2 main.hip -o llvm
// RUN: env LLVM_PROFILE_FILE=llvm.profraw ./llvm
// RUN: %counts gfx1100.llvm.profraw | FileCheck %s --check-prefix=LLVM
// LLVM: {{^}}_Z6kernelPi: [160, 80]{{$}}

//--- module.hip
#include <hip/hip_runtime.h>
extern "C" __global__ void loaded(int *out) { out[threadIdx.x] = 1; }

//--- main.hip
#include "check.h"
#ifndef RESET
#define RESET __llvm_profile_reset_counters
#endif
extern "C" void RESET(void);
extern "C" int __llvm_profile_hip_collect_device_data(void);

__global__ void kernel(int *out) {
    int i = threadIdx.x;
    if (i < 40)
        out[i] = i;
}

__global__ void before(int *out) {
    for (int i = 0; i < 1000; i++)
        atomicAdd(out, i);
}

static __attribute__((noinline)) void launch(int *out, int threads) { kernel<<<1, threads>>>(out); }

int main() {
    int *out = device_ints(256);
    launch(out, 64);
    hipModule_t module;
    hipFunction_t loaded;
    void *arguments[] = {&out};
    if (hipModuleLoad(&module, "module.hsaco") == hipSuccess) {
        CHECK(hipModuleGetFunction(&loaded, module, "loaded"));
        CHECK(hipModuleLaunchKernel(loaded, 1, 1, 1, 64, 1, 1, 0, 0, arguments, nullptr));
        CHECK(hipDeviceSynchronize());
        CHECK(hipModuleUnload(module));
    }
    if (__llvm_profile_hip_collect_device_data() != 0)
        return 1;
    hipStream_t stream;
    CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    before<<<4, 64, 0, stream>>>(out);
    RESET();
    launch(out, 96);
    CHECK(hipDeviceSynchronize());
}
