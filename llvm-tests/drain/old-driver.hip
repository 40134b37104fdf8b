// clang's old way of compiling for several targets (--no-offload-new-driver). clang 23 then links no device runtime, and
// finds it only with LTO: both are passed.
//
// REQUIRES: debian, gfx1100
// DEFINE: %{device-rt} = -Xoffload-linker /usr/lib/llvm-23/lib/clang/23/lib/amdgcn-amd-amdhsa/libclang_rt.profile.a
// RUN: not %hip_cxx %pgo %exact -O1 --no-offload-new-driver %s -o a %devprof_a 2>&1 | FileCheck %s --check-prefix=BARE
// RUN: not %hip_cxx %pgo %exact -O1 --no-offload-new-driver %{device-rt} %s -o a %devprof_a 2>&1 | FileCheck %s --check-prefix=BARE
// RUN: %hip_cxx %pgo %exact -O1 --no-offload-new-driver %{device-rt} -foffload-lto %s -o a %devprof_a && ./a
// RUN: %counts gfx1100.default.profraw | FileCheck %s
// RUN: rm *.profraw && %hip_cxx %pgo %exact -O1 --no-offload-new-driver %{device-rt} -fgpu-rdc %s -o a %devprof_a -lamdhip64 && ./a
// RUN: %counts gfx1100.default.profraw | FileCheck %s
#include "check.h"

__global__ void branch(int *out) {
    int i = threadIdx.x;
    if (i < 40)
        out[i] = i;
}

int main() {
    branch<<<1, 64>>>(device_ints(64));
    CHECK(hipDeviceSynchronize());
}

// BARE: undefined {{(hidden )?}}symbol: __llvm_profile_instrument_gpu
// CHECK:     {{^}}_Z6branchPi: [64, 40]{{$}}
// CHECK-NOT: {{.}}
