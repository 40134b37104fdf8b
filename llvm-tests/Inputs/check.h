// For the programs of the tests: a HIP call that fails ends the program with its name.
#pragma once
#include <hip/hip_runtime.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                                                                   \
    do {                                                                                                              \
        hipError_t error = (call);                                                                                    \
        if (error != hipSuccess) {                                                                                    \
            fprintf(stderr, "%s: %s\n", #call, hipGetErrorString(error));                                             \
            abort();                                                                                                  \
        }                                                                                                             \
    } while (0)

static inline int *device_ints(size_t count) {
    int *memory;
    CHECK(hipMalloc(&memory, count * sizeof *memory));
    return memory;
}
