// IR-level profiles (-fprofile-generate) make the full round trip: written, merged, and fed back with -fprofile-use.
// The device's code then has branch weights.
//
// RUN: %hip_cxx -fprofile-generate %exact -O2 %s -o a %devprof_a && env LLVM_PROFILE_FILE=a.profraw ./a
// RUN: %profraw gfx1100.a.profraw | FileCheck %s --check-prefix=RAW
// RUN: %counts gfx1100.a.profraw | FileCheck %s --check-prefix=COUNTS
// RUN: %profdata merge gfx1100.a.profraw -o device.profdata
// RUN: %hip_cxx -Xarch_device -fprofile-use=device.profdata -O2 %s --offload-device-only -S -emit-llvm -o a.ll
// RUN: FileCheck %s < a.ll
#include "check.h"

__global__ void kernel(int *out) {
    int i = threadIdx.x;
    if (i < 10)
        atomicAdd(out, i);
    else
        atomicMax(out + 1, i);
}

int main() {
    kernel<<<1, 64>>>(device_ints(64));
    CHECK(hipDeviceSynchronize());
}

// Bit 56 of the version: instrumented in IR.
// RAW: version 11 flags 0x100000000000000

// COUNTS: {{^}}_Z6kernelPi: [{{(10, 54|54, 10)}}]{{$}}

// CHECK: define {{.*}} @_Z6kernelPi({{.*}}!prof ![[ENTRY:[0-9]+]]
// CHECK: br i1 {{.*}}, !prof ![[WEIGHTS:[0-9]+]]
// CHECK: ![[ENTRY]] = !{!"function_entry_count", i64 64}
// CHECK: ![[WEIGHTS]] = !{!"branch_weights", i32 {{(10, i32 54|54, i32 10)}}}
