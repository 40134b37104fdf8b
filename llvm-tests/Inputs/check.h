// For the test programs: if a HIP call fails, CHECK prints the call and ends the program.
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
