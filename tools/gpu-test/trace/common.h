#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <unistd.h>
#define CHECK(call)                                                                                                    \
    do {                                                                                                               \
        cudaError_t error = call;                                                                                      \
        if (error != cudaSuccess) {                                                                                    \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error));                  \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
static inline void devprof(const char *name) {
    int (*function)() = (int (*)())dlsym(RTLD_DEFAULT, name);
    if (!function) {
        fprintf(stderr, "%s is missing\n", name);
        exit(1);
    }
    if (function() != 0) {
        fprintf(stderr, "%s failed\n", name);
        exit(1);
    }
}
static __global__ void spin(long long ns) {
    long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - start < ns);
}
