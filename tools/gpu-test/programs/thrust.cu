// A program with CUB's and Thrust's kernels, which are in system headers and not instrumented: their results are right,
// and the counts of the program's own kernel are exact.
//
// VARIANTS: O2 O2+rdc O2+lto plain
// PLAIN-NOT: {{.}}
// NO-PLAIN: sm_90.default.profraw: _Z4fillPjj: [1048576, 1048576, 524288]
#include "check.h"
#include <algorithm>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <thrust/device_vector.h>
#include <thrust/reduce.h>
#include <thrust/sort.h>
#include <vector>

static const unsigned count = 1 << 20;

__global__ void fill(unsigned *out, unsigned count) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        unsigned value = i * 2654435761u;
        if (i % 2)
            value = ~value;
        out[i] = value;
    }
}

int main() {
    thrust::device_vector<unsigned> keys(count), sorted(count);
    fill<<<count / 256, 256>>>(thrust::raw_pointer_cast(keys.data()), count);
    CHECK(cudaDeviceSynchronize());
    std::vector<unsigned> expected(count), found(count);
    thrust::copy(keys.begin(), keys.end(), expected.begin());
    unsigned long long sum = 0;
    for (unsigned key : expected)
        sum += key;
    std::sort(expected.begin(), expected.end());

    // CUB.
    size_t bytes = 0;
    unsigned *from = thrust::raw_pointer_cast(keys.data()), *to = thrust::raw_pointer_cast(sorted.data());
    CHECK(cub::DeviceRadixSort::SortKeys(nullptr, bytes, from, to, (int)count));
    thrust::device_vector<char> storage(bytes);
    CHECK(cub::DeviceRadixSort::SortKeys(thrust::raw_pointer_cast(storage.data()), bytes, from, to, (int)count));
    thrust::copy(sorted.begin(), sorted.end(), found.begin());
    EXPECT(found == expected);

    // Thrust.
    EXPECT(thrust::reduce(keys.begin(), keys.end(), 0ull) == sum);
    thrust::sort(keys.begin(), keys.end());
    thrust::copy(keys.begin(), keys.end(), found.begin());
    EXPECT(found == expected);
}
