// With flags in registers, a reset also forgets which flags a kernel has written: what runs again is covered again. A variable in
// front of the flags misaligns those of stock clang. The kernels have one flag, many, and a trap.
//
// REQUIRES: debian, gfx1100
// DEFINE: %{build} = %hip_cxx %pgo %flags -O2 %s %take_devprof %devprof_a
// DEFINE: %{run} = ./a && %counts gfx1100.default.profraw
// RUN: %{build} -o a && %{run} > stock && FileCheck %s < stock
// RUN: %{build} -o a %keep_flags && %{run} > pass && diff stock pass
#include "check.h"

extern "C" int devprof_reset_counters();

__device__ char odd[5] = {1, 2, 3, 4, 5};

// CHECK:      _Z4manyPii: [1, 0, 0, 1, 1, 1, 0]
// CHECK-NEXT: _Z5neverPi: [0]
// CHECK-NEXT: _Z6singlePi: [1]
// CHECK-NEXT: _Z7trapperPii: [1, 0, 0, 1, 1]
__global__ void many(int *out, int n) {
    int i = threadIdx.x;
    if (n & 1)
        out[i] += i;
    if (n & 2)
        out[i] ^= 3;
    if (n & 4)
        out[i] -= n;
}
__global__ void never(int *out) { out[0] = odd[out[1] & 3]; }
__global__ void single(int *out) { out[threadIdx.x] = odd[threadIdx.x & 3]; }
__global__ void trapper(int *out, int n) {
    if (n & 1)
        out[threadIdx.x] = 3;
    if (n > 100)
        __builtin_trap();
}

static void launch(int *out, int n) {
    many<<<1, 64>>>(out, n);
    single<<<1, 64>>>(out);
    trapper<<<1, 64>>>(out, n);
    CHECK(hipDeviceSynchronize());
}

int main() {
    int *out = device_ints(128);
    CHECK(hipMemset(out, 0, 512));
    for (int n = 0; n < 8; n++)
        launch(out, n);
    never<<<1, 1>>>(out);
    CHECK(hipDeviceSynchronize());
    if (devprof_reset_counters() != 0)
        abort();
    launch(out, 4);
    launch(out, 4 | 1 << 3);
}
