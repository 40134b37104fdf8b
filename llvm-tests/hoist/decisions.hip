// Bits of decisions (MC/DC) in registers: in loops, in more words than there are registers for, in decisions with more bits than a
// word, and where no bits can be in registers: if the wave ends or may wait. The bitmaps are the host's, also without atomic updates.
//
// REQUIRES: debian, gfx1100
// REQUIRES: wave32
// DEFINE: %{cxx} = %hip_cxx -w %pgo -fcoverage-mcdc %flags %keep_flags -O2
// DEFINE: %{same} = ./a && sh -c '%profdata merge --text gfx1100.default.profraw -o device && %profdata merge --text default.profraw -o host' && \
// DEFINE:     python3 %t/bitmaps.py device _Z5loopsjj _Z4manyj _Z5largej > of-device && python3 %t/bitmaps.py host _Z5loopsjj _Z4manyj _Z5largej | diff - of-device && \
// DEFINE:     python3 %t/bitmaps.py device ends waits | FileCheck %t/a.hip
// RUN: %{cxx} a.hip -o a %devprof_a && %{same}
// RUN: FileCheck a.hip --check-prefix=SIZES < of-device
// RUN: %{cxx} -mwavefrontsize64 -Xoffload-compiler -mwavefrontsize64 -Xarch_device -fprofile-update=atomic a.hip -o a %devprof_a && %{same}
//
// The bits imply flags. Which blocks ran is as with stock clang, also if the wave ends while a decision is evaluated.
//
// RUN: mv device plugin && %hip_cxx -w %pgo -fcoverage-mcdc %flags -Xarch_device -fprofile-update=atomic -O2 a.hip -o a %devprof_a && ./a && %profdata merge --text gfx1100.default.profraw | diff plugin -
//
// In a loop, there is no access to memory: the bitmap is loaded where the kernel starts, and written where it ends.
//
// RUN: %{cxx} --offload-device-only --no-gpu-bundle-output -S kernel.hip -o kernel.s && awk -f accesses kernel.s | FileCheck %s --check-prefix=CODE
// CODE:      {{^}}bitmap{{$}}
// CODE-NEXT: {{^}}bitmap{{$}}
// CODE-NEXT: {{^}}end, {{[1-9][0-9]*}} blocks in loops{{$}}
// CODE-NOT:  {{.}}
//
// If a decision is the condition of a loop, an iteration computes no bits.
//
// RUN: %{cxx} --offload-device-only --no-gpu-bundle-output -S loop.hip -o loop.s && awk -f bits loop.s | FileCheck %s --check-prefix=LOOP
// LOOP: {{^}}end, {{[1-9][0-9]*}} instructions in loops, 0 of bits{{$}}

//--- bits
# Of the kernel's code, how many vector instructions in its loops may be of bits.
/^kernel:/ { on = 1 }
on && /^(\.LBB|; %bb)/ { in_loop = /[Ll]oop/ }
on && in_loop && /^\tv_/ { all++; bits += /v_(or|lshl|cndmask)/ }
on && /^\.Lfunc_end/ { print "end, " all " instructions in loops, " bits + 0 " of bits"; exit }

//--- loop.hip
#include "check.h"
extern "C" __global__ void kernel(float *out, float re) {
    int k = 0;
    float a = 0, b = out[threadIdx.x];
    while (k < 99 && a * a + b * b < 4) {
        float next = a * a - b * b + re;
        b = 2 * a * b;
        a = next;
        k++;
    }
    out[threadIdx.x] = k;
}

//--- accesses
# Of the kernel's code, the accesses to the bitmap, and whether they are in a loop.
/^kernel:/ { on = 1 }
on && /^(\.LBB|; %bb)/ { in_loop = /[Ll]oop/; blocks += in_loop }
on && /__profbm_kernel.*@.*lo/ { print "bitmap" (in_loop ? " in a loop" : "") }
on && /^\.Lfunc_end/ { print "end, " blocks " blocks in loops"; exit }

//--- kernel.hip
#include "check.h"
extern "C" __global__ void kernel(int *out, int n) {
    int sum = 0;
    for (int k = 0; k < n; k++)
        if (out[k] > 3 && (out[k] < n || n == 7))
            sum += out[k];
    out[n + threadIdx.x] = sum;
}

//--- bitmaps.py
# bitmaps.py PROFILE-TEXT FUNCTION…: the size and the bytes of their bitmaps.
import sys

with open(sys.argv[1]) as file:
    lines = file.read().splitlines()
for name in sys.argv[2:]:
    at = lines.index("# Num Bitmap Bytes:", lines.index(name))
    print(name, *lines[at + 1 : lines.index("", at)])

//--- a.hip
#include "check.h"
#define HD __host__ __device__ __attribute__((noinline))
#define BIT(n) ((v >> (n)) & 1)

HD unsigned loops(unsigned v, unsigned n) {
    unsigned r = 0;
    for (unsigned k = 0; k < n && (BIT(0) || k < 3); k++)
        for (unsigned l = 0; l < 3; l++)
            if (BIT(1) && (l == k || BIT(2)))
                r += k + l;
            else if (!(BIT(3) && l == 1) || k == 2)
                r ^= k;
    return r;
}

#define FOUR(f, n) f(n) f(n + 1) f(n + 2) f(n + 3)
#define SIXTEEN(n) FOUR(DECIDE, n) FOUR(DECIDE, n + 4) FOUR(DECIDE, n + 8) FOUR(DECIDE, n + 12)
#define DECIDE(n) \
    if ((BIT((n) % 6) && BIT(((n) + 1) % 6)) || (BIT(((n) + 2) % 6) && r % 3 != (n) % 3)) \
        r += n;

HD unsigned many(unsigned v) {
    unsigned r = v;
    SIXTEEN(0)
    SIXTEEN(16)
    SIXTEEN(32)
    SIXTEEN(48)
    return r;
}

HD unsigned large(unsigned v) {
    return (BIT(0) || BIT(1)) && (BIT(2) || BIT(3)) && (BIT(4) || BIT(5)) && (BIT(0) || BIT(2)) && (BIT(1) || BIT(4)) && (BIT(3) || BIT(5));
}

HD unsigned decide(unsigned v) { return loops(v, v % 7) + many(v) + large(v); }

__global__ void kernel(unsigned *out) { out[threadIdx.x] = decide(threadIdx.x); }

// Of the lanes with an even number, the wave ends.
extern "C" __global__ void ends(unsigned *out, unsigned n) {
    unsigned v = threadIdx.x;
    if (v > 3 && (v < n || n == 0))
        out[v] = 1;
    if (v % 2 == 0)
        __builtin_amdgcn_endpgm();
    if (v > 60 || v == n || v == 1)
        out[v] = 2;
}

__device__ __attribute__((noinline)) bool ends_if(bool is) {
    if (is)
        __builtin_amdgcn_endpgm();
    return is;
}

extern "C" __global__ void ends_inside(unsigned *out, unsigned n) {
    unsigned v = threadIdx.x;
    if (v < 64 && (v % 2 == 0 || n == 40) && ends_if(n == 40))
        out[v] = 3;
}

// It may wait for others.
extern "C" __global__ void waits(unsigned *out, unsigned n) {
    unsigned v = threadIdx.x, k = 0;
    if (v > 3 && v < n)
        out[v]++;
    while (__hip_atomic_load(out + 64, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) == 0 && (k < v || k < 5))
        if (k++ == 6 || v == 5)
            out[v] += k;
}

int main() {
    auto *out = (unsigned *)device_ints(65);
    unsigned results[64];
    CHECK(hipMemset(out, 0, 260));
    kernel<<<1, 64>>>(out);
    CHECK(hipMemcpy(results, out, sizeof results, hipMemcpyDeviceToHost));
    for (unsigned v = 0; v < 64; v++)
        if (results[v] != decide(v))
            return 1;
    ends<<<1, 64>>>(out, 40);
    ends_inside<<<1, 64>>>(out, 40);
    waits<<<1, 64>>>(out, 9);
    CHECK(hipDeviceSynchronize());
}

// SIZES:      {{^}}_Z5loopsjj $2 {{.*}} 0xff 0xf{{$}}
// SIZES-NEXT: {{^}}_Z4manyj $56 {{.*}} 0xff
// SIZES-NEXT: {{^}}_Z5largej $16 {{.*}} 0x55
//
// `ends`: in both decisions, 3 of 4 test vectors: never n == 0, and never v == n in an odd lane. `waits`: 3 of 3; 3 of 4, because
// what it waits for does not happen; 3 of 3.
// CHECK:      {{^}}ends $1 # Bitmap Byte Values: 0xd7{{$}}
// CHECK-NEXT: {{^}}waits $2 # Bitmap Byte Values: 0xbf 0x3{{$}}
