// Coverage of code that nvcc compiles, in a toolkit of `devprof cuda-toolkit`: lines with the comment "ran" ran, those with "not" did
// not. Other lines have no instructions, or depend on the optimizer. O0: not optimized (-G).
//
// VARIANTS: plain plain+O0 plain+O1 plain+inject
// RUN: %{toolkit} toolkit --cuda $CUDA_PATH
// RUN: flags=-lineinfo
// RUN: %if O0 %{ flags=-G %}
// RUN: %if O1 %{ flags="-lineinfo -Xptxas -O1" %}
// RUN: %{nvcc} $flags -rdc=true -o out/a main.cu far.cu
// AFTER: printf 'stdout: seven\nstdout: sum 2870526922\n' >expected
// AFTER: grep -v '^%arch.default.profraw: ' results | diff expected -
// AFTER: %devprof report %{program}/a --profile %{results} --format lcov -o lcov
// AFTER: split-file test parts && cd parts
// AFTER: awk 'match($0, /\/\/ (ran|not)$/) { print FILENAME ":" FNR, substr($0, RSTART + 3) }' far.cu helper.h main.cu | sort >expected
// AFTER: awk -F '[:,]' '/^SF:/ { n = split($2, path, "/") } /^DA:/ { print path[n] ":" $2, $3 ? "ran" : "not" }' ../lcov | sort >found
// AFTER: [ -s expected ] && comm -23 expected found | diff /dev/null -

//--- helper.h
#include <stdio.h>
template <class T> __device__ __forceinline__ T clamped(T value) {
    if (value > 100) // ran
        value = value * 3 - 100; // ran
    if (value < -100000)
        printf("never %d\n", int(value)); // not
    return value;
}
__device__ int far(int value);
//--- far.cu
#include "helper.h"
static __device__ __noinline__ int same_name(int value) { // ran
    if (value == 123456)
        printf("never\n"); // not
    return value + 1; // ran
}
__device__ int far(int value) { // ran
    if (value % 3 == 0)
        return same_name(value); // ran
    if (value > 5000)
        printf("never\n"); // not
    return clamped(value); // ran
}
//--- main.cu
#include "check.h"
#include "helper.h"
static __device__ __noinline__ int same_name(int value) { // ran
    if (value == 7)
        printf("seven\n"); // ran
    return value * 2; // ran
}
__device__ __noinline__ int unused_branch(int value, int *out) { // ran
    if (value == 1000) {
        for (int i = 0; i < value; i++)
            out[i] = value; // not
    } else {
        out[value & 63] += value; // ran
    }
    return value ^ 5; // ran
}
__device__ int square(int value) { return value * value; }
__device__ int cube(int value) { return value * value * value; }
__device__ int (*table[2])(int) = {square, cube};
template <class T> __global__ void scale(T *all, int n) { // ran
    int i = blockIdx.x * blockDim.x + threadIdx.x; // ran
    if (i >= n)
        return;
    all[i] = clamped(all[i] * 2); // ran
}
__global__ void kernel(int *out, int n) { // ran
    __shared__ int shared[64];
    int i = threadIdx.x; // ran
    shared[i] = i; // ran
    __syncthreads(); // ran
    if (i % 4 == 0) { // ran
        out[i] = far(shared[63 - i]); // ran
    } else if (i == 200) {
        out[i] = far(i); // not
        atomicAdd(out + 1, 17); // not
    }
    switch (n) {
    case 1: atomicAdd(out + 2, 1); break; // not
    case 5: atomicAdd(out + 3, 3); break; // ran
    case 9: atomicAdd(out + 5, 4); break; // not
    case 11: atomicExch(out + 6, 4); break; // not
    }
    for (int k = 0; k < n; k++) {
        if (k == 3)
            out[i] += same_name(i); // ran
        if (k == 70)
            atomicSub(out, 3); // not
    }
    out[i] += unused_branch(i, out); // ran
    out[i] += table[n & 1](i); // ran
    asm volatile("{ .reg .pred p; .reg .u32 r; mov.u32 r, 0; AGAIN: add.u32 r, r, 1; setp.lt.u32 p, r, 4; @p bra AGAIN; }"); // ran
    if (__activemask() == 0)
        __nanosleep(100); // not
}
__global__ void never_launched(int *out) { // not
    out[0] = 1; // not
}
int main() {
    int *all = device_ints(1024), result[64];
    CHECK(cudaMemset(all, 1, 4096));
    scale<<<2, 32>>>((float *)all, 40);
    scale<<<1, 64>>>(all, 64);
    kernel<<<1, 64>>>(all, 5);
    CHECK(cudaMemcpy(result, all, sizeof result, cudaMemcpyDeviceToHost));
    unsigned sum = 0;
    for (int value : result)
        sum = sum * 31 + value;
    printf("sum %u\n", sum);
    // It is used, but has no threads.
    (void)cudaFuncSetCacheConfig(never_launched, cudaFuncCachePreferNone);
}
