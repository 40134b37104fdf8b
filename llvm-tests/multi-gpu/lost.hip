// A GPU is lost in the middle: its kernel traps, or writes to memory that does not exist. The program ends as without
// devprof, and the counts of the other GPUs are saved.
//
// REQUIRES: gfx1100, sim
// RUN: %hip_cxx %device_pgo %exact -O1 -c %s -o a.o
// RUN: %hip_cxx --hip-link a.o -o plain
// RUN: %hip_cxx --hip-link a.o -o linked %take_devprof %devprof_a
// DEFINE: %{run} = %ended env HSA_SIM_AGENTS=gfx1100,gfx1100,gfx1100 LLVM_PROFILE_FILE
// RUN: bash -uc 'for kind in trap memory; do %{run}=none.x %on_sim ./plain $kind; %{run}=preload-$kind.x %on_sim LD_PRELOAD=%devprof_so ./plain $kind; %{run}=linked-$kind.x %on_sim ./linked $kind; done' > out 2> err
// RUN: FileCheck %s < out
// RUN: not grep ^devprof: err
// CHECK:      end: hipErrorLaunchFailure
// CHECK-NEXT: exit 0
// CHECK:      end: hipErrorLaunchFailure
// CHECK-NEXT: exit 0
// CHECK:      end: hipErrorLaunchFailure
// CHECK-NEXT: exit 0
// CHECK:      end: hipErrorIllegalAddress
// CHECK-NEXT: exit 0
// CHECK:      end: hipErrorIllegalAddress
// CHECK-NEXT: exit 0
// CHECK:      end: hipErrorIllegalAddress
// CHECK-NEXT: exit 0
//
// RUN: bash -euc 'for way in preload linked; do for kind in trap memory; do for gpu in gfx1100 gfx1100.1 gfx1100.2; do echo $gpu; %counts $gpu.$way-$kind.x; done; done; done' > counts
// RUN: FileCheck %s --check-prefix=COUNTS < counts
// COUNTS-COUNT-4: {{gfx1100$[[:space:]]_Z4losePii: .0, 0.$[[:space:]]_Z6kernelPi: .64, 40.$[[:space:]]gfx1100.1$[[:space:]]_Z4losePii: .0, 0.$[[:space:]]_Z6kernelPi: .128, 80.$[[:space:]]gfx1100.2$[[:space:]]_Z4losePii: .1, [01].$[[:space:]]_Z6kernelPi: .64, 40.$}}
// COUNTS-NOT: gfx
//
// LLVM's own runtime loses the counts of all GPUs.
// RUN: %if llvm-runtime %{ %hip_cxx %pgo %exact -O1 %s -o peer %}
// RUN: %if llvm-runtime %{ bash -uc 'for kind in trap memory; do %{run}=peer-$kind.x %on_sim HSA_SIM_BAR=large ./peer $kind; done' 2>&1 | FileCheck %s --check-prefix=PEER %}
// RUN: %if llvm-runtime %{ ls | not grep gfx.*peer- %}
// PEER: LLVM Profile Warning: failed to copy device bounds table
// PEER: LLVM Profile Warning: failed to copy device bounds table
#include "check.h"

__global__ void kernel(int *out) {
    if (threadIdx.x < 40)
        out[threadIdx.x] = 1;
}

__global__ void lose(int *out, int how) {
    if (how == 0)
        __builtin_trap();
    *reinterpret_cast<int *>(0x10000000000ull) = 1;
}

int main(int, char **words) {
    for (int device = 0; device < 2; device++) {
        CHECK(hipSetDevice(device));
        for (int launch = 0; launch <= device; launch++)
            kernel<<<1, 64>>>(device_ints(64));
        CHECK(hipDeviceSynchronize());
    }
    CHECK(hipSetDevice(2));
    int *out = device_ints(64);
    kernel<<<1, 64>>>(out);
    CHECK(hipDeviceSynchronize());
    lose<<<1, 1>>>(out, *words[1] == 'm');
    printf("end: %s\n", hipGetErrorName(hipDeviceSynchronize()));
}
