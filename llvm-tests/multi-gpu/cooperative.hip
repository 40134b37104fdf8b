// Cooperative launches: all workgroups of a grid wait for each other, with global wave sync (gfx90a) or with atomics.
//
// REQUIRES: debian, gfx1100, sim
// RUN: clang++-23 --rocm-device-lib-path=/usr/lib/llvm-22/lib/clang/22/amdgcn/bitcode -I%inputs --offload-arch=gfx90a --offload-arch=gfx942 --offload-arch=gfx1100 %device_pgo %exact -O1 %s -o a %take_devprof %devprof_a
// RUN: env HSA_SIM_AGENTS=gfx90a,gfx942,gfx1100 LLVM_PROFILE_FILE=p.x %on_sim ./a | FileCheck %s
// RUN: %counts gfx90a.p.x | FileCheck %s --check-prefix=COUNTS
// RUN: %counts gfx942.p.x | FileCheck %s --check-prefix=COUNTS
// RUN: %counts gfx1100.p.x | FileCheck %s --check-prefix=COUNTS
// CHECK:      gfx90a{{.*}}: 1, 4 and 7 workgroups: 0 wrong
// CHECK-NEXT: gfx942{{.*}}: 1, 4 and 7 workgroups: 0 wrong
// CHECK-NEXT: gfx1100: 1, 4 and 7 workgroups: 0 wrong
// CHECK-NOT:  {{.}}
// COUNTS:     {{^}}_Z6kernelPiS_: [1536, 15360, 0]{{$}}
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
        int *data = device_ints(1024), *out = device_ints(1), wrong;
        CHECK(hipMemset(out, 0, sizeof *out));
        void *arguments[] = {&data, &out};
        for (int workgroups : {1, 4, 7})
            CHECK(hipLaunchCooperativeKernel((void *)kernel, dim3(workgroups), dim3(128), arguments, 0, 0));
        CHECK(hipMemcpy(&wrong, out, sizeof wrong, hipMemcpyDeviceToHost));
        printf("%s: 1, 4 and 7 workgroups: %d wrong\n", properties.gcnArchName, wrong);
    }
}
