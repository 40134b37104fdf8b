// 64 threads, of which every second one takes a branch: the counts are 64 and 32 at every optimization level. The
// entry is uniform, the branch is not.
//
// RUN: %hip_cxx %pgo %exact -O0 %s -o a %devprof_a && ./a
// RUN: %counts gfx1100.default.profraw | FileCheck %s
// RUN: %profraw gfx1100.default.profraw | FileCheck %s --check-prefix=RAW
// RUN: %hip_cxx %pgo %exact -O1 %s -o a %devprof_a && ./a
// RUN: %counts gfx1100.default.profraw | FileCheck %s
// RUN: %profraw gfx1100.default.profraw | FileCheck %s --check-prefix=RAW
// RUN: %hip_cxx %pgo %exact -O3 %s -o a %devprof_a && ./a
// RUN: %counts gfx1100.default.profraw | FileCheck %s
// RUN: %profraw gfx1100.default.profraw | FileCheck %s --check-prefix=RAW
// RUN: ls | FileCheck %s --check-prefix=FILES
// RUN: %profdata merge gfx1100.default.profraw -o a.profdata
// RUN: %profdata show --all-functions --counts a.profdata | FileCheck %s --check-prefix=UNIFORM
#include "check.h"

__global__ void branch(int *out) {
    int i = threadIdx.x;
    if (i % 2 == 0)
        out[i] = i;
}

int main() {
    branch<<<1, 64>>>(device_ints(64));
    CHECK(hipDeviceSynchronize());
}

// CHECK:     {{^}}_Z6branchPi: [64, 32]{{$}}
// CHECK-NOT: {{.}}

// RAW:      {{^}}version 11 flags 0x0{{$}}
// RAW:      {{^}}records 1{{$}}
// RAW-NEXT: {{^}}record 0: counters [64, 32] uniform [64, 0] wave size {{32|64}}{{$}}
// RAW-NOT:  {{.}}

// FILES:      {{^a$}}
// FILES-NEXT: {{^default.profraw$}}
// FILES-NEXT: {{^gfx1100.default.profraw$}}
// FILES-NOT:  {{.}}

// UNIFORM: Block uniformity: [D]
