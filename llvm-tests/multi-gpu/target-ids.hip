// HIP reports the target IDs of the GPUs, and finds the code for them in a program with several. Files are named after the
// processor, without the features.
//
// REQUIRES: debian, gfx1100, sim
// DEFINE: %{compile} = clang++-23 %hip_headers -Wno-unused-command-line-argument --rocm-device-lib-path=/usr/lib/llvm-22/lib/clang/22/amdgcn/bitcode -I%inputs -Xarch_device -nogpuinc %device_pgo %exact -O1 %s %take_devprof %devprof_a
// RUN: %{compile} --offload-arch=gfx942:sramecc+:xnack- --offload-arch=gfx90a:xnack- --offload-arch=gfx90a:xnack+ -o a
// RUN: env HSA_SIM_AGENTS=gfx942,gfx90a LLVM_PROFILE_FILE=out/p.x %on_sim ./a | FileCheck %s
// RUN: ls out | FileCheck %s --check-prefix=FILES
// RUN: %counts out/gfx942.p.x | FileCheck %s --check-prefix=COUNTS
// RUN: %counts out/gfx90a.p.x | FileCheck %s --check-prefix=COUNTS
// CHECK:      0: gfx942:sramecc+:xnack-: ran
// CHECK-NEXT: 1: gfx90a:sramecc+:xnack-: ran
// CHECK-NOT:  {{.}}
// FILES:      {{^}}gfx90a.p.x
// FILES-NEXT: {{^}}gfx942.p.x
// FILES-NOT:  {{.}}
// COUNTS:     {{^}}_Z6kernelPi: [64, 40]{{$}}
//
// RUN: %{compile} --offload-arch=gfx942 -o b && env HSA_SIM_AGENTS=gfx942 LLVM_PROFILE_FILE=b.x %on_sim ./b | FileCheck %s --check-prefix=ONE
// RUN: %{compile} --offload-arch=gfx9-4-generic -o c && env HSA_SIM_AGENTS=gfx942 LLVM_PROFILE_FILE=c.x %on_sim ./c | FileCheck %s --check-prefix=ONE
// RUN: %counts gfx942.b.x | FileCheck %s --check-prefix=COUNTS
// RUN: %counts gfx942.c.x | FileCheck %s --check-prefix=COUNTS
// ONE: 0: gfx942:sramecc+:xnack-: ran
//
// Code that expects XNACK is refused. (A program whose own kernels are all refused crashes in HIP 7.2.4, also on ROCr.)
// DEFINE: %{module} = clang++-23 %hip_headers -Wno-unused-command-line-argument --rocm-device-lib-path=/usr/lib/llvm-22/lib/clang/22/amdgcn/bitcode -I%inputs -nogpuinc -O1 %s --offload-device-only --no-gpu-bundle-output
// RUN: %{module} --offload-arch=gfx942:xnack- -o off.co && %{module} --offload-arch=gfx942:xnack+ -o on.co
// RUN: env HSA_SIM_AGENTS=gfx942 %on_sim ./b off.co on.co | FileCheck %s --check-prefix=XNACK
// XNACK:      off.co: no error
// XNACK-NEXT: on.co: no kernel image is available for execution on the device
#include "kernel.h"

#ifndef __HIP_DEVICE_COMPILE__
int main(int count, char **files) {
    for (int n = 1; n < count; n++) {
        hipModule_t module;
        printf("%s: %s\n", files[n], hipGetErrorString(hipModuleLoad(&module, files[n])));
    }
    (void)hipGetLastError();
    int devices;
    CHECK(hipGetDeviceCount(&devices));
    for (int device = 0; device < devices; device++) {
        hipDeviceProp_t properties;
        CHECK(hipGetDeviceProperties(&properties, device));
        CHECK(hipSetDevice(device));
        int *out = device_ints(64), result = 0;
        kernel<<<1, 64>>>(out);
        hipError_t error = hipGetLastError();
        CHECK(hipMemcpy(&result, out + 39, 4, hipMemcpyDeviceToHost));
        const char *outcome = error ? hipGetErrorString(error) : result == 1 ? "ran" : "wrong";
        printf("%d: %s: %s\n", device, properties.gcnArchName, outcome);
    }
}
#endif
