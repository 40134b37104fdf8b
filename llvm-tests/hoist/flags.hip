// Flags that a plugin of `devprof flags` keeps in registers: the same as without it, also of blocks before a wave ends, traps or
// waits, with waves of 32 and 64 lanes, and on gfx1201, which has other barriers and no instruction that waits for all counters.
//
// REQUIRES: debian, gfx1100, sim, wave32
// DEFINE: %{options} = -O2
// DEFINE: %{gpu} = gfx1100
// DEFINE: %{build} = %hip_cxx %device_pgo %flags %{options} %s %take_devprof %devprof_a
// DEFINE: %{run} = %ended %on_sim HSA_SIM_AGENTS=%{gpu} DEVPROF_SYNC_MS=1000 ./a
// DEFINE: %{flags} = %counts %{gpu}.default.profraw > all && FileCheck %s < all && grep -v traps all
// DEFINE: %{same} = %{build} -o a && %{run} && %{flags} > stock && \
// DEFINE:     %{build} -o a %keep_flags && %{run} && %{flags} > pass && diff stock pass
// DEFINE: %{conditional} = %{build} -o a %keep_flags -Xclang -mllvm -Xclang -conditional-counter-update && %{run} && \
// DEFINE:     %{flags} > both && diff stock both
// RUN: %{same} && %{conditional}
// REDEFINE: %{options} = -O0
// RUN: %{same} && %{conditional}
// REDEFINE: %{options} = -O3 -mwavefrontsize64 -Xoffload-compiler -mwavefrontsize64
// RUN: %{same}
// REDEFINE: %{gpu} = gfx1201
// REDEFINE: %{options} = -O2 --no-offload-arch=gfx1100 --offload-arch=gfx1201 %gfx1201_headers
// RUN: %{same}
//
// A function has one test at its end, and behind it a loop with the stores, or a kernel the call of a function with the loop. A
// function of one block tests where it starts, and flags of blocks that may be followed by a trap are stored where LLVM stores them.
// No flag is loaded.
// It will be optimized again when it is linked.
// RUN: %hip_cxx %pgo %flags %keep_flags -O2 %s --offload-device-only -foffload-lto -fno-integrated-cc1 -S -emit-llvm -o ir
// RUN: FileCheck %s --check-prefix=IR < ir
//
// Only the variables of kernels are symbols of the code object: the host code registers them. If the file is linked alone, each section
// has one variable for all device functions.
// RUN: FileCheck %s --check-prefixes=VARIABLES,JOINED --implicit-check-not=@__profc__Z6calledi --implicit-check-not=@__covrec_ < ir
// RUN: %hip_cxx %pgo %flags %keep_flags -O2 %s --offload-device-only -fgpu-rdc -fno-integrated-cc1 -S -emit-llvm -o rdc
// RUN: FileCheck %s --check-prefixes=VARIABLES,EACH --implicit-check-not=@__devprof_joined < rdc
// VARIABLES-DAG: @__llvm_prf_unifcnt__Z6leavesPii = {{.*}}protected
// VARIABLES-DAG: @__profc__Z6leavesPii = {{.*}}protected
// VARIABLES-DAG: @__profd__Z6leavesPii = {{.*}}protected
// JOINED-DAG: @__devprof_joined{{.*}} = internal {{.*}}section "__llvm_prf_ucnts"
// JOINED-DAG: @__devprof_joined{{.*}} = internal {{.*}}section "__llvm_prf_cnts"
// JOINED-DAG: @__devprof_joined{{.*}} = internal {{.*}}section "__llvm_prf_data"
// JOINED-DAG: @__devprof_joined{{.*}} = internal {{.*}}constant {{.*}}section "__llvm_covfun"
// EACH-DAG: @__llvm_prf_unifcnt__Z6calledi = {{.*}}hidden
// EACH-DAG: @__profc__Z6calledi = {{.*}}hidden
// EACH-DAG: @__profd__Z6calledi = {{.*}}hidden
#include "check.h"

// CHECK-DAG: _Z10divergencePi: [1, 1, 0, 1, 1]
// The second branch is entered with no active lane, and LLVM may execute it.
__global__ void divergence(int *out) {
    int i = threadIdx.x, x = i;
    if (i < 20)
        x += 3;
    else
        x ^= 5;
    if (i > 1000)
        x += out[i];
    out[i] = x;
}

// IR-LABEL: define {{.*}} @_Z6leavesPii(
// IR:       load i32, ptr addrspace(1) @[[LEAVES:__devprof_missing[.0-9]*]],
// IR-NOT:   {{store i8|@__profc_}}
// IR:       call void @__devprof_set_flags1(ptr addrspace(4) inreg @{{[^,]*}}, i32
// IR-NOT:   {{store i8|@__profc_}}
// IR:       ret void
__global__ void leaves(int *out, int n) {
    int i = threadIdx.x;
    if (i >= n)
        return;
    for (int k = 0; k < 100; k++) {
        if (out[k] == i + 7)
            break;
        switch ((k + i) % 5) {
        case 0: out[i] += k; break;
        case 1: out[i] ^= k;
        case 2: out[i] -= i; break;
        case 7: out[i] = 0;
        }
    }
}

// IR-LABEL: define {{.*}} @_Z3onePi(
// IR-NEXT:  load i32, ptr addrspace(1) @[[ONE:__devprof_missing[.0-9]*]],
// IR:       store i8 0, ptr addrspace(1) @__profc__Z3onePi,
// IR:       atomicrmw and ptr addrspace(1) @[[ONE]], i32 -2
// IR-NOT:   store i8
// IR:       ret void
__global__ void one(int *out) { out[threadIdx.x] = 1; }

__device__ __attribute__((noinline)) int recurse(int n) { return n < 2 ? 1 : recurse(n - 1) + (n & 4 ? recurse(n - 2) : 0); }

__device__ __attribute__((noinline)) int called(int x) {
    if (x > 3)
        return x / 2;
    return x;
}

__global__ void calls(int *out) {
    int i = threadIdx.x;
    for (int k = 0; k < 3; k++)
        out[i] += called(i + k);
    out[i] += recurse(i % 6);
}

__device__ void step(bool is, int &sum) {
    if (is)
        sum++;
}

// The copies of a block: their conditions are joined if each iteration has all of them.
// CHECK-DAG: _Z4stepbRi: [1, 1, 1]
// CHECK-DAG: _Z6joinedPiii: [1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 0, 0, 0]
__global__ void joined(int *out, int first, int last) {
    int i = threadIdx.x, sum = 0;
#pragma unroll
    for (int k = 0; k < 8; k++)
        if (i + k * 8 < first)
            sum += out[i + k];
    for (int x = first;;) {
        x--;
        step(x == first - 3, sum);
        step(x == first - 4, sum);
        if (x > last)
            continue;
        // Only after the last iteration, where the conditions above are false.
        step(x == first + i + 1, sum);
        if (i > 1000)
            out[3] = 1;
        if (x <= last)
            break;
    }
    // The same with an outer loop instead.
    for (int x = first;;)
        for (;;) {
            x--;
            step(x == first - 5, sum);
            step(x == first - 6, sum);
            if (x > last)
                break;
            step(x == first + i + 1, sum);
            if (x <= last)
                goto end;
        }
end:
    out[i] = sum;
}

// In a function with many marks, of copies of a block behind a branch, no way sets a constant, and the conditions are joined where they
// are known. The other loop must not be unrolled when the code is optimized again.
// CHECK-DAG: _Z7guardedPiii: [1, 1, 1, 1, 1, 1, 1]
// IR-LABEL: define {{.*}} @_Z7guardedPiii(
// IR-NOT:   phi i32 [ {{[0-9]+}}, %{{[0-9]+}} ], [ {{[0-9]+}}, %{{[0-9]+}} ]
// IR:       call void (...) @llvm.fake.use(i1
// IR-NOT:   phi i32 [ {{[0-9]+}}, %{{[0-9]+}} ], [ {{[0-9]+}}, %{{[0-9]+}} ]
// IR:       ret void
__global__ void guarded(int *out, int n, int step) {
    int i = threadIdx.x, sum = out[i];
#pragma unroll
    for (int k = 0; k < 40; k++)
        if (i + k < n)
            sum ^= out[i + k * step];
    for (int k = 0; k < n; k++)
        if (out[k] > i)
            sum++;
    out[i] = sum;
}

// Of conditions that imply each other, one is enough.
// CHECK-DAG: _Z7boundedPij: [1, 1, 1, 1]
// IR-LABEL: define {{.*}} @_Z7boundedPij(
// IR-NOT:   {{ (or|and) i1 |@llvm.fake.use}}
// IR:       ret void
__global__ void bounded(int *out, unsigned n) {
    unsigned i = threadIdx.x;
#pragma unroll
    for (unsigned k = 0; k < 40; k++)
        if (i + k < n)
            out[i + 64] ^= out[i + k];
}

// The flags of the inner blocks imply that of the block around them: it has no bit.
// CHECK-DAG: _Z7impliedPii: [1, 1, 1, 1, 1]
// IR-LABEL: define {{.*}} @_Z7impliedPii(
// IR:       phi i32 [ 3, %{{[0-9]+}} ], [ 5, %{{[0-9]+}} ], [ 9, %{{[0-9]+}} ]
// IR:       ret void
__global__ void implied(int *out, int n) {
    int i = threadIdx.x;
    if (i == n) {
        out[i + 64] = 1;
    } else {
        if (out[i] == 3)
            out[i + 62] = 2;
        else
            out[i + 63] = 3;
    }
}

// What is set in an iteration of a loop that may wait is written before the next one, after one test.
// CHECK-DAG: _Z5pollsPi: [1, 1, 1, 1, 0, 1, 1, 1]
// IR-LABEL: define {{.*}} @_Z5pollsPi(
// IR:       load i32, ptr addrspace(1) @[[POLLS:__devprof_missing[.0-9]*]],
// IR:       load i32, ptr addrspace(1) @[[POLLS]],
// IR:       load i32, ptr addrspace(1) @[[POLLS]],
// IR-NOT:   @__devprof_missing
// IR:       ret void
__global__ void polls(int *out) {
    int i = threadIdx.x;
    while (__hip_atomic_load(out + 110, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) < 3) {
        if (i < 20)
            out[i + 64] += 1;
        if (i == 0)
            __hip_atomic_fetch_add(out + 110, 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
        else if (i > 1000)
            out[i] = 1;
    }
}

// The flags of a way from the loop's branches are a constant where all ways meet.
// CHECK-DAG: _Z5meetsPi: [1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 0, 1, 1, 0, 1, 0]
// IR-LABEL: define {{.*}} @_Z5meetsPi(
// IR-NOT:   {{ or i32| select }}
// IR:       %[[SEEN:[0-9]+]] = phi i32 [ {{[0-9]+}}, %{{[0-9]+}} ], [ %[[NEXT:[0-9]+]], %{{[0-9]+}} ]
// IR-NOT:   {{ or i32| select }}
// IR:       %[[WAY:[0-9]+]] = phi i32 [ %{{[0-9]+}}, %{{[0-9]+}} ], [ {{[0-9]+}}, %{{[0-9]+}} ], [ {{[0-9]+}}, %{{[0-9]+}} ], [ {{[0-9]+}}, %{{[0-9]+}} ]
// IR-NEXT:  %[[NEXT]] = or i32 %[[SEEN]], %[[WAY]]
// IR-NOT:   {{ or i32| select }}
// IR:       ret void
__global__ void meets(int *out) {
    int i = threadIdx.x;
    if (i == 70 || out[i] == 70)
        return;
#pragma unroll 1
    for (int n = 0; n < 10; n++)
        if (out[n] != 70 && out[n + i] != 71 && (n < 5 || out[n + 10] == 72))
            out[64 + i] += n;
}

[[noreturn]] __device__ __attribute__((noinline)) void finish(int *out) {
    if (threadIdx.x % 2)
        out[0] = 1;
    __builtin_amdgcn_endpgm();
}

// The wave ends in a function while half of its lanes are not active.
__global__ void ends(int *out) {
    if (threadIdx.x % 2 == 0)
        out[1] = 2;
    if (threadIdx.x > 40)
        finish(out);
    out[threadIdx.x] = 3;
}

// Waves of 64 lanes, and pairs of waves of 32 lanes: all but those of the last one wait for it, and end in the loop.
__global__ void waits(int *out) {
    int i = threadIdx.x;
    if (i == 3)
        out[2] = 1;
    if (i >= 64) {
        __hip_atomic_store(out + 100, 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
        __builtin_amdgcn_endpgm();
    }
    for (;;)
        if (__hip_atomic_load(out + 100, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) == 1)
            __builtin_amdgcn_endpgm();
}

// The first branch is of other lanes than the trap. Which lanes execute the code behind the trap is not defined.
// CHECK-DAG:  _Z5trapsPi: [1, 1, 1, {{.}}, 1, {{.}}, {{.}}]
// IR-LABEL:  define {{.*}} @_Z5trapsPi(
// IR:         store i8
// IR:         atomicrmw and
// IR:         store i8
// IR:         atomicrmw and
// IR:         call void @llvm.trap
__global__ void traps(int *out) {
    if (threadIdx.x < 20)
        out[threadIdx.x] = 3;
    if (threadIdx.x == 25)
        __builtin_trap();
    if (threadIdx.x == 26)
        out[26] = 3;
}

// The call of `leaves`. It knows no flags, and no words.
// IR-LABEL: define internal void @__devprof_set_flags1(ptr addrspace(4) inreg %0, i32 %1)
// IR-NOT:   {{store i8|@__profc_|@__devprof_missing}}
// IR:       load atomic i32, ptr addrspace(1) %[[WORDS:[0-9]+]] syncscope("agent") monotonic
// IR-NOT:   {{store i8|@__profc_|@__devprof_missing}}
// IR:       @llvm.cttz
// IR:       store i8
// IR:       atomicrmw and ptr addrspace(1) %[[WORDS]],
// IR:       ret void
// IR:       !{{[0-9]+}} = !{!"llvm.loop.unroll.disable", i32 1}

int main() {
    int *out = device_ints(128);
    CHECK(hipMemset(out, 0, 512));
    divergence<<<1, 64>>>(out);
    leaves<<<1, 64>>>(out, 50);
    one<<<1, 64>>>(out);
    calls<<<1, 64>>>(out);
    joined<<<1, 64>>>(out, 30, 10);
    meets<<<1, 32>>>(out);
    guarded<<<1, 64>>>(out, 40, 1);
    bounded<<<1, 64>>>(out, 80);
    CHECK(hipMemset(out, 0, 4));
    CHECK(hipMemset(out + 1, 3, 1));
    implied<<<1, 64>>>(out, 2);
    CHECK(hipMemset(out + 110, 0, 4));
    polls<<<1, 32>>>(out);
    ends<<<1, 64>>>(out);
    waits<<<1, 128>>>(out);
    CHECK(hipDeviceSynchronize());
    traps<<<1, 64>>>(out);
    if (hipDeviceSynchronize() == hipSuccess)
        abort();
}
