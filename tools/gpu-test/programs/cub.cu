// CUB's and Thrust's own kernels, which are in system headers and instrumented only with this option. Their results are
// right with counts, with lists of counters and with flags. (How many blocks run depends on the registers of the kernels, so
// the counts of these programs differ. Scans and sorts differ from run to run: their blocks wait for each other.)
//
// UNEQUAL: sm_90.default.profraw: three regions after a return in `if constexpr` ran according to clang's counts, and not according to flags, which are right
// VARIANTS: O2 O2+lists
// RUN: %{cu} -Xarch_device -mllvm=-system-headers-coverage cub.cu -o main.o
// RUN: %{cxx} main.o -o out/a %{link}
// CHECK: sm_90.default.profraw: _Z4fillPii: [1048576, 1000000]
// AFTER: FileCheck test --input-file=results
// AFTER: test "$(grep -c '^sm_90.default.profraw: .*\(cub\|thrust\)' results)" -ge 40
// AFTER: test "$(grep -vc '^sm_90.default.profraw: ' results)" = 0
#include "check.h"
#include <cub/device/device_reduce.cuh>
#include <thrust/device_vector.h>
#include <thrust/transform.h>

static const int count = 1000000;

struct twice {
    __device__ int operator()(int x) const { return x % 2 ? 2 * x : x; }
};

__global__ void fill(int *out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        out[i] = i % 100;
}

int main() {
    thrust::device_vector<int> numbers(count), sum(1);
    int *from = thrust::raw_pointer_cast(numbers.data()), *to = thrust::raw_pointer_cast(sum.data());
    fill<<<4096, 256>>>(from, count);
    thrust::transform(numbers.begin(), numbers.end(), numbers.begin(), twice());
    size_t bytes = 0;
    CHECK(cub::DeviceReduce::Sum(nullptr, bytes, from, to, count));
    thrust::device_vector<char> storage(bytes);
    CHECK(cub::DeviceReduce::Sum(thrust::raw_pointer_cast(storage.data()), bytes, from, to, count));

    // Of 100 numbers in a row, the even ones have the sum 2450, and the odd ones 2500.
    EXPECT(sum[0] == count / 100 * (2450 + 2 * 2500));
}
