// Counter updates that were moved out of loops: the counts and the uniform counts are those of the same program without the
// pass.
//
// REQUIRES: debian, wave32
// DEFINE: %{level} = -O1
// DEFINE: %{wave} =
// DEFINE: %{plain} = %hip_cxx %device_pgo %exact -O0 %{wave} %s -o a %take_devprof %devprof_a && ./a && %profraw gfx1100.default.profraw > plain
// DEFINE: %{same} = %hip_cxx %device_pgo %exact %{level} %{wave} %hoist %s -o b %take_devprof %devprof_a && ./b && %profraw gfx1100.default.profraw > hoisted && \
// DEFINE:     diff plain hoisted
//
// The counts of the program without the pass do not depend on the level, also if they are sampled.
// RUN: %{plain} && %{same}
// RUN: FileCheck %s < hoisted
// REDEFINE: %{level} = -O2
// RUN: %{same}
// Without copies of the counters, the runtime adds to the uniform counters itself.
// RUN: env DEVPROF_COUNTER_COPIES_MB=0 ./a && %profraw gfx1100.default.profraw > plain
// RUN: env DEVPROF_COUNTER_COPIES_MB=0 ./b && %profraw gfx1100.default.profraw > hoisted
// RUN: diff plain hoisted
// REDEFINE: %{level} = -O3
// REDEFINE: %{wave} = -mwavefrontsize64 -Xoffload-compiler -mwavefrontsize64
// RUN: %{plain} && %{same}
//
// Sampled counts, and IR-level instrumentation.
// DEFINE: %{counted} =
// DEFINE: %{both} = %hip_cxx %{counted} %{level} %s -o a %take_devprof %devprof_a && ./a && %profraw gfx1100.default.profraw > plain && \
// DEFINE:     %hip_cxx %{counted} -O2 %hoist %s -o a %take_devprof %devprof_a && ./a && %profraw gfx1100.default.profraw > hoisted && \
// DEFINE:     diff plain hoisted && grep -c "counters .*[1-9]" hoisted && \
// DEFINE:     %hip_cxx %{counted} -O2 %hoist --cuda-device-only -S -emit-llvm %s -o - | grep -c "call .*@__devprof_instrument_sums"
// REDEFINE: %{counted} = %device_pgo
// REDEFINE: %{level} = -O0
// RUN: %{both}
// REDEFINE: %{counted} = -Xarch_device -fprofile-generate %exact
// REDEFINE: %{level} = -O2
// RUN: %{both}
#include "check.h"

__device__ __attribute__((noinline)) unsigned callee(unsigned n) {
    unsigned sum = 0;
    for (unsigned k = 0; k < n; k++)
        sum += k * k;
    return sum;
}

__global__ void nested(unsigned *out, unsigned n) {
    unsigned i = threadIdx.x, x = 0;
    for (unsigned a = 0; a < n; a++)
        for (unsigned b = 0; b < i % 5; b++) // divergent, and often zero trips
            for (unsigned c = 0; c < 3; c++)
                if ((a ^ b ^ c ^ i) & 1)
                    x += c;
    out[i] = x;
}

__global__ void leaves(unsigned *out, unsigned n) {
    unsigned i = threadIdx.x, x = 0;
    for (unsigned a = 0; a < 20; a++) {
        if (a == i)
            return;
        if (a + i == 30)
            break;
        if ((a + i) % 3 == 0)
            continue;
        x += a;
    }
    out[i] = x;
}

__global__ void switches(unsigned *out, unsigned n) {
    unsigned i = threadIdx.x, x = 0;
    for (unsigned a = 0; a < n; a++)
        switch ((a + i) % 4) {
        case 0: x += 1; break;
        case 1: x += 2;
        case 2: x ^= a; break;
        default: x += callee(a % 3);
        }
    out[i] = x;
}

__global__ void zero(unsigned *out, unsigned n) {
    unsigned x = 0;
    for (unsigned a = 9; a < n; a++)
        x += out[a];
    for (unsigned char b = 250; b != 4; b++) // wraps
        x += b;
    out[threadIdx.x] = x;
}

int main() {
    auto *out = (unsigned *)device_ints(128);
    CHECK(hipMemset(out, 0, 512));
    nested<<<2, 100>>>(out, 6);
    leaves<<<1, 40>>>(out, 6);
    switches<<<1, 64>>>(out, 6);
    zero<<<1, 33>>>(out, 6);
    CHECK(hipDeviceSynchronize());
}

// zero: 33 lanes, no trip of the first loop, 10 trips of the second one.
// CHECK: counters [33, 0, 330] uniform [32, 0, 320] wave size 32
