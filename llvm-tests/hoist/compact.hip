// Code with many updates, which a plugin of `devprof flags` makes smaller: a template that is inlined and unrolled, with conditions
// of which LLVM makes selects. The counts are the same.
//
// REQUIRES: debian, wave32
// DEFINE: %{build} = %hip_cxx %device_pgo %exact -O3
// Without the plugin, LLVM takes long to compile this at -O3. The counts do not depend on the level.
// RUN: %{build} -O0 %s -o a %take_devprof %devprof_a && env LLVM_PROFILE_FILE=plain.profraw ./a && %profraw gfx1100.plain.profraw > plain
// RUN: %{build} %compact %s -o a %take_devprof %devprof_a && env LLVM_PROFILE_FILE=compact.profraw ./a && %profraw gfx1100.compact.profraw > compact
// RUN: diff plain compact && FileCheck %s < compact
// CHECK: counters [{{[1-9]}}
//
// All updates are in lists, and there are fewer calls and blocks.
// RUN: %{build} --cuda-device-only -S -emit-llvm %s -o plain.ll && %{build} %compact --cuda-device-only -S -emit-llvm %s -o compact.ll
// RUN: grep -c "call void @__llvm_profile_instrument_gpu" plain.ll > before; grep -c "s_swappc_b64.*s.40:44" compact.ll > after
// RUN: grep -cE "^[0-9]+:" plain.ll >> before; grep -cE "^[0-9]+:" compact.ll >> after
// RUN: python3 -c "import sys; b, a = ([int(n) for n in open(f)] for f in ('before', 'after')); print(b, a); sys.exit(not (2 * a[0] < b[0] and 2 * a[1] < b[1]))"
//
// They stay in lists if LLVM knows a condition as a byte that is 0 or 1.
// RUN: sed -n '/^define.*bools/,/^}/p' compact.ll > bools && grep s_swappc bools && not grep "call void @__devprof_instrument" bools
//
// One call is for several conditions.
// RUN: grep -c "s_mov_b32 s54, " compact.ll
//
// A block that calls a function of one comparison is moved in front of its branch, although the function stored its wave size there.
// RUN: sed -n '/^define.*joined/,/^}/p' compact.ll > joined && grep __devprof_instrument joined && not grep "br i1" joined
//
// Updates do not keep LLVM from unrolling loops, behind which an array is in registers.
// RUN: sed -n '/^define.*unrolled/,/^}/p' compact.ll > unrolled && grep s_swappc unrolled && not grep alloca unrolled
//
// A function with few updates calls nothing.
// RUN: grep -A40 "define.*few" compact.ll | grep "call void @__llvm_profile_instrument_gpu"
//
// Without copies of the counters, full waves are also counted in the uniform counters.
// RUN: env DEVPROF_COUNTER_COPIES_MB=0 LLVM_PROFILE_FILE=direct.profraw ./a && %profraw gfx1100.direct.profraw > direct && diff plain direct && grep 'uniform \[[^]]*[1-9]' direct
//
// Relocatable device code of two files, which have lists in common.
// RUN: sh -ec 'echo "#define SECOND"; cat %s' > second.hip && cp %s first.hip
// DEFINE: %{rdc} = %{build} -fgpu-rdc -DTWO first.hip second.hip -o rdc %take_devprof %devprof_a
// RUN: %{rdc} -O0 && env LLVM_PROFILE_FILE=plain.profraw ./rdc && %profraw gfx1100.plain.profraw > plain-rdc
// RUN: %{rdc} %compact && env LLVM_PROFILE_FILE=compact.profraw ./rdc && %profraw gfx1100.compact.profraw > compact-rdc
// RUN: diff plain-rdc compact-rdc && FileCheck %s < compact-rdc && grep -c 'counters .*[1-9]' compact-rdc
#include "check.h"

template <typename T> __device__ T lowest(T a, T b) { return a < b ? a : b; }

template <int N> __device__ int reduce(const int *values) {
    int result = values[0];
#pragma unroll
    for (int n = 1; n < N; n++)
        result = lowest(result, values[n] % 3 == 0 ? values[n] : -values[n]);
    return result;
}

__device__ inline int reductions() {
    int values[24];
#pragma unroll
    for (int n = 0; n < 24; n++)
        values[n] = threadIdx.x * (n + 1) % 7;
    // The second comparison of each counts the lanes for which the first one is false.
#pragma unroll
    for (int n = 1; n < 24; n++)
        values[n] = values[n - 1] == 5 || values[n] == 2 ? values[n] : 1;
    return reduce<24>(values) + reduce<12>(values);
}

#ifdef SECOND
__global__ void again(int *out) { out[threadIdx.x] = reductions(); }

void second(int *out) { again<<<3, 40>>>(out); }
#else
__global__ void many(int *out) { out[threadIdx.x] = reductions(); }

#ifndef TWO
__global__ void bools(const bool *given, int *out) {
    int result = 0;
#pragma unroll
    for (int n = 0; n < 8; n++)
        if (given[n])
            result = lowest(result, n - 20);
    out[threadIdx.x] = result;
}

// The conditions in front of one block are more than the scalar registers.
__global__ void wide(int *out) {
    int values[96];
#pragma unroll
    for (int n = 0; n < 96; n++)
        values[n] = threadIdx.x * (n + 1) % 7;
    out[threadIdx.x] = reduce<96>(values);
}

__device__ inline bool isSmall(unsigned value) { return value < 5; }

__global__ void joined(int *out) {
    unsigned n = threadIdx.x;
    out[n] = n > 3 && isSmall(n ^ 21);
}

__global__ void unrolled(int *out) {
    int values[128], result = 0;
    for (int n = 0; n < 128; n++)
        values[n] = out[(n + threadIdx.x) % 64] < n ? out[(n + threadIdx.x) % 64] : n;
    for (int n = 0; n < 128; n++)
        if (values[n] < result)
            result = values[n];
    out[threadIdx.x] = result;
}

__global__ void few(int *out) {
    if (threadIdx.x % 2)
        out[threadIdx.x] = lowest(out[threadIdx.x], 5);
}
#endif

void second(int *out);

int main() {
    int *out = device_ints(64);
    many<<<1, 64>>>(out);
#ifdef TWO
    second(out);
#else
    wide<<<1, 64>>>(out);
    joined<<<1, 64>>>(out);
    unrolled<<<1, 64>>>(out);
    few<<<1, 64>>>(out);
    CHECK(hipMemset(out, 0, 8));
    CHECK(hipMemset(out, 1, 5));
    bools<<<1, 32>>>(reinterpret_cast<bool *>(out), out + 32);
#endif
    CHECK(hipDeviceSynchronize());
}
#endif
