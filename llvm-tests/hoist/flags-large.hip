// A function with more than 64 flags. If it is optimized again when it is linked, LLVM's late passes leave it to the link, and only it.
//
// REQUIRES: debian, gfx1100, sim, wave32
// DEFINE: %{device} = %hip_cxx %pgo %flags %keep_flags -O2 %s --offload-device-only -Xclang -fdebug-pass-manager -c -o device
// DEFINE: %{passes} = grep 'pass: SLPVectorizerPass' passes
// RUN: %{device} -foffload-lto 2> passes && %{passes} | FileCheck %s --check-prefix=LTO
// LTO-DAG: Skipping pass: SLPVectorizerPass on _Z5largePi
// LTO-DAG: Running pass: SLPVectorizerPass on _Z5smallPi
// RUN: %{device} 2> passes && %{passes} | FileCheck %s --check-prefix=ONCE
// ONCE-DAG: Running pass: SLPVectorizerPass on _Z5largePi
// ONCE-DAG: Running pass: SLPVectorizerPass on _Z5smallPi
//
// A flag that a dominating block sets has no other mark, so that functions stay small while they are inlined.
// RUN: %hip_cxx %pgo %flags %keep_flags -O2 %s --offload-device-only -S -emit-llvm -o ir \
// RUN:     -mllvm -print-after=adce -mllvm -filter-print-funcs=_Z8repeatedPi 2> marks
// RUN: grep -c 'call void @__devprof_mark_covered(.*@__profc__Z5twiceii to ptr), i1 true)' marks | grep -x 1
// RUN: grep -c 'call void @__devprof_mark_covered(.*@__profc__Z5twiceii, i64 1) to ptr), i1 %' marks | grep -x 4
//
// A bool in memory is only compared with 0, for the program and for flags. It is not truncated.
// RUN: %hip_cxx %pgo %flags %keep_flags -O2 %s --offload-device-only -foffload-lto -S -emit-llvm -o bools
// RUN: FileCheck %s --check-prefix=BOOLS < bools
// BOOLS-LABEL: define {{.*}} @_Z5boolsPKbPi(
// BOOLS-NOT: trunc
// BOOLS: icmp ne i8
// BOOLS-NOT: trunc
// BOOLS: ret void
//
// The flags are those that stock clang stores.
// DEFINE: %{build} = %hip_cxx %device_pgo %flags -O2 %s %take_devprof %devprof_a -o a
// DEFINE: %{run} = %ended %on_sim HSA_SIM_AGENTS=gfx1100 ./a && %counts gfx1100.default.profraw
// RUN: %{build} && %{run} > stock && FileCheck %s --check-prefix=FLAGS < stock
// RUN: %{build} %keep_flags && %{run} > pass && diff stock pass
// FLAGS: _Z5largePi: [1, {{(1, ){12}(0, ){52}0}}, 1,
#include "check.h"
#include <cstring>

// The first three of 16 steps are taken.
#define STEP(n) \
    if (out[n] == 7) { \
        x += i < 20 ? out[x & 31] : x; \
        if (i + n < 60) \
            x ^= 5; \
        else \
            out[32] = x; \
        if (i == n) \
            x -= n; \
    } else { \
        x += 3; \
    }
#define STEPS(n) STEP(n) STEP(n + 1) STEP(n + 2) STEP(n + 3)

__global__ void large(int *out) {
    int i = threadIdx.x, x = i;
    STEPS(0) STEPS(4) STEPS(8) STEPS(12)
    out[i] = x;
}

__global__ void small(int *out) {
    if (out[0] == 7)
        out[1] = 3;
}

__device__ int twice(int x, int limit) {
    if (x < limit)
        x *= 2;
    return x;
}

__global__ void repeated(int *out) {
    int x = threadIdx.x;
#pragma unroll
    for (int i = 0; i < 4; ++i)
        x = twice(x, i * 10);
    out[threadIdx.x] = twice(x, 30) + x;
}

__device__ int chosen(bool is, int x, int y) { return is ? x : y; }

__global__ void bools(const bool *in, int *out) {
    int x = 0;
    bool any = false;
#pragma unroll
    for (int i = 0; i < 16; ++i) {
        bool is = in[i * 32 + threadIdx.x];
        x = chosen(is, x, x + i);
        any = is || any;
    }
    out[threadIdx.x] = any ? x : -x;
}

int main() {
    int *out, some[64] = {7, 7, 7};
    CHECK(hipMalloc(&out, sizeof some));
    CHECK(hipMemcpy(out, some, sizeof some, hipMemcpyHostToDevice));
    large<<<1, 32>>>(out);
    small<<<1, 32>>>(out);
    repeated<<<1, 32>>>(out);
    bool *in, half[512] = {};
    memset(half, true, 256);
    CHECK(hipMalloc(&in, sizeof half));
    CHECK(hipMemcpy(in, half, sizeof half, hipMemcpyHostToDevice));
    bools<<<1, 32>>>(in, out);
    CHECK(hipDeviceSynchronize());
}
