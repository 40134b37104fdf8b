// The device's files stand where LLVM_PROFILE_FILE says, directories made, patterns expanded, the architecture before
// the file's name.
//
// RUN: rm -rf %t && mkdir %t && cd %t
// RUN: %hip_cxx %pgo %exact -O2 %s -o a %devprof_a
// RUN: env LLVM_PROFILE_FILE=new/deep/%%p-100%%%%.profraw ./a
// RUN: ls new/deep | FileCheck %s --check-prefix=PID
// RUN: env LLVM_PROFILE_FILE=pool/%%m.profraw ./a && env LLVM_PROFILE_FILE=pool/%%m.profraw ./a
// RUN: ls pool | FileCheck %s --check-prefix=POOL
// RUN: %counts pool/gfx1100.*.profraw | FileCheck %s
// RUN: ls -a . new new/deep pool | FileCheck %s --check-prefix=REST
#include "check.h"

__global__ void kernel(int *out) { out[threadIdx.x] = 1; }

int main() {
    kernel<<<1, 64>>>(device_ints(64));
    CHECK(hipDeviceSynchronize());
}

// As LLVM's host runtime, devprof knows no %%.
// PID:      {{^}}[[PID:[0-9]+]]-100.profraw{{$}}
// PID-NEXT: {{^}}gfx1100.[[PID]]-100.profraw{{$}}
// PID-NOT:  {{.}}

// Host and device, each merged over both runs.
// POOL:      {{^}}[[HASH:[0-9]+]]_0.profraw{{$}}
// POOL-NEXT: {{^}}gfx1100.{{[0-9]+}}_0.profraw{{$}}
// POOL-NOT:  {{.}}

// CHECK: {{^}}_Z6kernelPi: [128]{{$}}

// REST-NOT: {{tmp|default}}
