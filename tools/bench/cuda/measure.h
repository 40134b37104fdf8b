// CHECK ends the program if a call fails. `copy_of` copies values to the GPU. `measure` prints the median time of work on the GPU,
// without the first rounds, which warm up.
#pragma once
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>

#define CHECK(call)                                                                          \
    do {                                                                                     \
        if (auto error = (call); error != 0) {                                               \
            fprintf(stderr, "%s:%d: %s: error %d\n", __FILE__, __LINE__, #call, (int)error); \
            exit(1);                                                                         \
        }                                                                                    \
    } while (0)

template <class T> T *copy_of(const std::vector<T> &values) {
    T *copy;
    CHECK(cudaMalloc(&copy, values.size() * sizeof(T)));
    CHECK(cudaMemcpy(copy, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
    return copy;
}

template <class Work> void measure(const char *name, Work work, int rounds = 25) {
    constexpr int WARM_UP = 5;
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    std::vector<float> all;
    for (int round = 0; round < rounds; round++) {
        CHECK(cudaEventRecord(begin));
        work();
        CHECK(cudaEventRecord(end));
        CHECK(cudaEventSynchronize(end));
        float milliseconds;
        CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
        all.push_back(milliseconds);
    }
    std::sort(all.begin() + WARM_UP, all.end());
    printf("%s\t%.2f\n", name, all[(WARM_UP + rounds) / 2] * 1000);
}
