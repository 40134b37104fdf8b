// Cooperative launches: all workgroups of a grid wait for each other, with global wave sync (gfx90a) or with atomics. The
// largest grid has four workgroups for each compute unit (gfx1100: for each pair of them, which HIP counts as one).
//
// REQUIRES: debian, gfx1100, sim
// RUN: clang++-23 %hip_headers -Wno-unused-command-line-argument --rocm-device-lib-path=/usr/lib/llvm-22/lib/clang/22/amdgcn/bitcode -I%inputs --offload-arch=gfx90a --offload-arch=gfx942 --offload-arch=gfx1100 %device_pgo %exact -O1 %s -o a %take_devprof %devprof_a
// RUN: env HSA_SIM_AGENTS=gfx90a,gfx942,gfx1100 LLVM_PROFILE_FILE=p.x %on_sim ./a | FileCheck %s
// RUN: %counts gfx90a.p.x | FileCheck %s --check-prefix=COUNTS
// RUN: %counts gfx942.p.x | FileCheck %s --check-prefix=MI300X
// RUN: %counts gfx1100.p.x | FileCheck %s --check-prefix=GFX11
// CHECK:      gfx90a{{.*}}: 1, 4, 7 and 32 workgroups: 0 wrong
// CHECK-NEXT: gfx942{{.*}}: 1, 4, 7 and 1216 workgroups: 0 wrong
// CHECK-NEXT: gfx1100: 1, 4, 7 and 16 workgroups: 0 wrong
// CHECK-NOT:  {{.}}
// COUNTS:     {{^}}_Z6kernelPiS_: [5632, 56320, 0]{{$}}
// GFX11:      {{^}}_Z6kernelPiS_: [3584, 35840, 0]{{$}}
// MI300X:     {{^}}_Z6kernelPiS_: [157184, 1571840, 0]{{$}}
#include "check.h"
#include <hip/hip_cooperative_groups.h>

__global__ void kernel(int *data, int *wrong) {
    auto grid = cooperative_groups::this_grid();
    int rank = grid.thread_rank(), size = grid.size(), other = (rank + size / 2) % size;
    for (int round = 0; round < 10; round++) {
        data[rank] = round * size + rank;
        grid.sync();
        if (data[other] != round * size + other)
            atomicAdd(wrong, 1);
        grid.sync();
    }
}

int main() {
    int devices;
    CHECK(hipGetDeviceCount(&devices));
    for (int device = 0; device < devices; device++) {
        hipDeviceProp_t properties;
        CHECK(hipGetDeviceProperties(&properties, device));
        CHECK(hipSetDevice(device));
        int largest = 4 * properties.multiProcessorCount;
        int *data = device_ints(128 * largest), *out = device_ints(1), wrong;
        CHECK(hipMemset(out, 0, sizeof *out));
        void *arguments[] = {&data, &out};
        for (int workgroups : {1, 4, 7, largest})
            CHECK(hipLaunchCooperativeKernel((void *)kernel, dim3(workgroups), dim3(128), arguments, 0, 0));
        CHECK(hipMemcpy(&wrong, out, sizeof wrong, hipMemcpyDeviceToHost));
        printf("%s: 1, 4, 7 and %d workgroups: %d wrong\n", properties.gcnArchName, largest, wrong);
    }
}
