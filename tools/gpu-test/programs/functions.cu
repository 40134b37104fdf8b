// Device functions have their own counts, inlined or not, and however they are called.
//
// VARIANTS: O0 O1 O2 O3 O0+rdc O2+rdc O2+lto
// 128 calls of the kernel, and each with n > 0 makes another one: 128 threads × (i % 4) more.
// CHECK: sm_90.default.profraw: _Z4downi: [320, 192]
// CHECK: sm_90.default.profraw: _Z5limiti: [128, 27]
// CHECK: sm_90.default.profraw: _Z5timesIfET_S0_i: [128]
// CHECK: sm_90.default.profraw: _Z5timesIiET_S0_i: [128]
// CHECK: sm_90.default.profraw: _Z5twicei: [48]
// CHECK: sm_90.default.profraw: _Z6kernelPi: [128, 48, 64]
// CHECK: sm_90.default.profraw: _Z6negatei: [64]
// CHECK: sm_90.default.profraw: _Z6squarei: [64]
// CHECK: sm_90.default.profraw: _ZN7Counter3addEi: [128]
// CHECK: sm_90.default.profraw: functions:_ZL5localii: [128, 64]
// CHECK: sm_90.default.profraw: functions:_ZN12_GLOBAL__N_16hiddenEi: [128]
// CHECK: sm_90.default.profraw: functions:_ZZ6kernelPiENKUliE_clEi: [128]
#include "check.h"

__device__ int limit(int x) {
    if (x > 100)
        return 100;
    return x;
}

__device__ __noinline__ int twice(int x) { return 2 * x; }

__device__ __noinline__ int square(int x) { return x * x; }
__device__ __noinline__ int negate(int x) { return -x; }

__device__ __noinline__ int down(int n) {
    if (n > 0)
        return down(n - 1) + 1;
    return 0;
}

template <typename T> __device__ T times(T x, int n) { return x * n; }

static __device__ int local(int x, int y) { return x < 64 ? x : y; }

namespace {
__device__ int hidden(int x) { return x ^ 1; }
} // namespace

struct Counter {
    int sum = 0;
    __device__ void add(int x) { sum += x; }
};

__global__ void kernel(int *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int value = limit(i);
    if (i < 48)
        value += twice(i);
    // A pointer that differs between the lanes of a warp.
    int (*called)(int) = i % 2 ? square : negate;
    value += called(i);
    value += down(i % 4);
    value += times(i, 2) + (int)times(1.5f, i);
    value += local(i, 7) + hidden(i);
    Counter counter;
    counter.add(i);
    auto last = [](int x) { return x + 1; };
    out[i] = value + counter.sum + last(i);
}

int main() {
    // Without optimization, the recursion needs more than the default of 1 KiB.
    CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 16 << 10));
    kernel<<<2, 64>>>(device_ints(128));
    CHECK(cudaDeviceSynchronize());
}
