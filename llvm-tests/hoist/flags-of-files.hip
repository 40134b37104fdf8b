// Relocatable device code of which one file is compiled with the plugin that keeps flags in registers, and the other one without it:
// the linker takes the flags of shared functions, and the functions, from either of them. The flags are those of a build without
// the plugin, with and without LTO.
//
// REQUIRES: debian, gfx1100
// DEFINE: %{options} = -O2
// DEFINE: %{compile} = %hip_cxx %device_pgo %flags -fgpu-rdc %{options} -I. -c
// DEFINE: %{link} = %hip_cxx %device_pgo -fgpu-rdc %{options} --hip-link -o a %take_devprof %devprof_a
// DEFINE: %{run} = ./a && %counts gfx1100.default.profraw
// DEFINE: %{objects} = "first.o second.pass.o" "second.pass.o first.o" "first.pass.o second.pass.o"
// DEFINE: %{same} = rm -f *.o && %{compile} first.hip -o first.o && %{compile} second.hip -o second.o && \
// DEFINE:     %{link} first.o second.o && %{run} > stock && FileCheck %s < stock && \
// DEFINE:     %{compile} first.hip -o first.pass.o %keep_flags && %{compile} second.hip -o second.pass.o %keep_flags && \
// DEFINE:     for objects in %{objects}; do %{link} $objects && %{run} > mixed && diff stock mixed || exit 1; done
// RUN: sh -euc '%{same}'
// REDEFINE: %{options} = -O2 -fno-offload-lto
// REDEFINE: %{objects} = "first.pass.o second.o" "second.o first.pass.o"
// RUN: sh -euc '%{same}'
//
// Each of the files sets flags that the other one does not set, after it has set the flags next to them.
// CHECK:      _Z5firstPii: [1]
// CHECK-NEXT: _Z6calledi: [1, 1, 1, 1, 1]
// CHECK-NEXT: _Z6secondPii: [1, 1, 1]
// CHECK-NEXT: _Z6sharedIiEvPT_: [1, 1, 0, 1, 1, 1, 1]
// CHECK-NEXT: _Z7inlinedi: [1, 1, 1, 1, 1]

//--- shared.h
#include "check.h"

inline __device__ int inlined(int x) {
    if (x & 1)
        x += 4;
    if (x & 2)
        x ^= 9;
    return x;
}

inline __device__ __attribute__((noinline)) int called(int x) {
    if (x & 1)
        x ^= 12;
    if (x & 2)
        x += 8;
    return x;
}

template <class T> __global__ void shared(T *out) {
    int i = threadIdx.x;
    if (i > 20)
        out[i] += inlined(0);
    else if (i == 99)
        out[i] = 1;
    if (i < 40)
        out[i] += called(i);
}

//--- first.hip
#include "shared.h"

void launch_second(int *out, int x);

// The flag in front of the others misaligns them.
__global__ void first(int *out, int x) { out[threadIdx.x] = inlined(x); }

int main() {
    int *out = device_ints(128);
    CHECK(hipMemset(out, 0, 512));
    launch_second(out, 0);
    first<<<1, 64>>>(out, 0);
    first<<<1, 64>>>(out, 1);
    CHECK(hipDeviceSynchronize());
    launch_second(out, 2);
    shared<int><<<1, 64>>>(out);
    CHECK(hipDeviceSynchronize());
}

//--- second.hip
#include "shared.h"

__global__ void second(int *out, int x) {
    if (threadIdx.x < 5)
        out[threadIdx.x] += inlined(x);
}

void launch_second(int *out, int x) {
    second<<<1, 64>>>(out, x);
    shared<int><<<1, 1>>>(out);
    CHECK(hipDeviceSynchronize());
}
