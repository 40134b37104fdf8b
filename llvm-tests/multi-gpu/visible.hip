// ROCR_VISIBLE_DEVICES selects GPUs, by number or UUID, and their order. devprof's profiles are numbered as HIP numbers the
// GPUs.
//
// REQUIRES: gfx1100, sim
// RUN: %hip_cxx -Xarch_device -nogpuinc --offload-arch=gfx1101 %device_pgo %exact -O1 %s -o a %take_devprof %devprof_a
// DEFINE: %{run} = env HSA_SIM_AGENTS=gfx1100,gfx1101,gfx1101,gfx1100 %on_sim
// RUN: %{run} LLVM_PROFILE_FILE=all/p.x ./a | FileCheck %s --check-prefix=ALL
// RUN: %{run} ROCR_VISIBLE_DEVICES=3,GPU-0000000000000003,0 LLVM_PROFILE_FILE=three/p.x ./a | FileCheck %s --check-prefix=THREE
// ALL:        0: gfx1100, bus 1, 0000000000000001
// ALL-NEXT:   1: gfx1101, bus 2, 0000000000000002
// ALL-NEXT:   2: gfx1101, bus 3, 0000000000000003
// ALL-NEXT:   3: gfx1100, bus 4, 0000000000000004
// ALL-NOT:    {{.}}
// THREE:      0: gfx1100, bus 4, 0000000000000004
// THREE-NEXT: 1: gfx1101, bus 3, 0000000000000003
// THREE-NEXT: 2: gfx1100, bus 1, 0000000000000001
// THREE-NOT:  {{.}}
//
// RUN: ls three | FileCheck %s --check-prefix=FILES
// RUN: %counts three/gfx1100.p.x | FileCheck %s --check-prefix=COUNTS1
// RUN: %counts three/gfx1101.p.x | FileCheck %s --check-prefix=COUNTS2
// RUN: %counts three/gfx1100.1.p.x | FileCheck %s --check-prefix=COUNTS3
// FILES:      {{^}}gfx1100.1.p.x
// FILES-NEXT: gfx1100.p.x
// FILES-NEXT: gfx1101.p.x
// FILES-NOT:  {{.}}
// COUNTS1: {{^}}_Z6kernelPi: [64, 40]{{$}}
// COUNTS2: {{^}}_Z6kernelPi: [128, 80]{{$}}
// COUNTS3: {{^}}_Z6kernelPi: [192, 120]{{$}}
//
// A trace has HIP's numbers, too, unless HIP_VISIBLE_DEVICES changes HIP's. Device n launches the kernel n + 1 times.
// DEFINE: %{trace} = %{run} LD_PRELOAD=%devprof_so
// RUN: %{trace} DEVPROF_TRACE=three.trace ROCR_VISIBLE_DEVICES=3,GPU-0000000000000003,0 ./a
// RUN: %devprof stats three.trace --by agent --csv --kernel '^kernel' | FileCheck %s --check-prefix=TRACE3
// TRACE3:      "kernel(int*)",1,{{.*}},"GPU 0 gfx1100"
// TRACE3-NEXT: "kernel(int*)",2,{{.*}},"GPU 1 gfx1101"
// TRACE3-NEXT: "kernel(int*)",3,{{.*}},"GPU 2 gfx1100"
// RUN: %{trace} DEVPROF_TRACE=one.trace ROCR_VISIBLE_DEVICES=3,2 HIP_VISIBLE_DEVICES=1 ./a
// RUN: %devprof stats one.trace --by agent --csv --kernel '^kernel' | FileCheck %s --check-prefix=TRACE1
// TRACE1:      "kernel(int*)",1,{{.*}},"GPU 1 gfx1101"
// TRACE1-NOT:  {{.}}
//
// An entry that is not valid, or that is not the first one for its GPU, ends the list. HIP_VISIBLE_DEVICES selects of what
// is left.
// RUN: %{run} ROCR_VISIBLE_DEVICES=2,4,1 ./a | FileCheck %s --check-prefix=ONE
// RUN: %{run} ROCR_VISIBLE_DEVICES=2,2,1 ./a | FileCheck %s --check-prefix=ONE
// RUN: %{run} ROCR_VISIBLE_DEVICES=3,2 HIP_VISIBLE_DEVICES=1 ./a | FileCheck %s --check-prefix=ONE
// ONE:     0: gfx1101, bus 3, 0000000000000003
// ONE-NOT: {{.}}
// RUN: %{run} ROCR_VISIBLE_DEVICES= ./a | FileCheck %s --check-prefix=NONE
// RUN: %{run} ROCR_VISIBLE_DEVICES=GPU-,1 ./a | FileCheck %s --check-prefix=NONE
// NONE:     no ROCm-capable device is detected
// NONE-NOT: {{.}}
#include "kernel.h"

#ifndef __HIP_DEVICE_COMPILE__
int main() {
    int devices;
    hipError_t found = hipGetDeviceCount(&devices);
    if (found != hipSuccess) {
        puts(hipGetErrorString(found));
        return 0;
    }
    for (int device = 0; device < devices; device++) {
        hipDeviceProp_t properties;
        CHECK(hipGetDeviceProperties(&properties, device));
        printf("%d: %s, bus %d, %.16s\n", device, properties.gcnArchName, properties.pciBusID, properties.uuid.bytes);
        CHECK(hipSetDevice(device));
        int *out = device_ints(64);
        for (int launch = 0; launch <= device; launch++)
            kernel<<<1, 64>>>(out);
        CHECK(hipDeviceSynchronize());
    }
}
#endif
