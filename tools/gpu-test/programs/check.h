// For the programs: if a CUDA call fails, CHECK prints the call and ends the program.
#pragma once
#include <cuda.h>
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>

static inline const char *describe(cudaError_t error) { return cudaGetErrorString(error); }

static inline const char *describe(CUresult error) {
    const char *text = "unknown error";
    cuGetErrorString(error, &text);
    return text;
}

#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        auto error = (call);                                                                                           \
        if (error != 0) {                                                                                              \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, describe(error));                            \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

// Ends the program if a result is wrong.
#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);                                  \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

// The test does not apply to this machine.
#define SKIP(reason) (puts(reason), exit(77))

static inline int *device_ints(size_t count) {
    int *memory;
    CHECK(cudaMalloc(&memory, count * sizeof *memory));
    CHECK(cudaMemset(memory, 0, count * sizeof *memory));
    return memory;
}
