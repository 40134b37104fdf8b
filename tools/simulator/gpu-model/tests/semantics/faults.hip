// Each mode ends the process with a fault, except "none".
#include "check.h"

#include <cassert>
#include <string_view>

__device__ __attribute__((noinline)) void poke(int *array, int index) { array[index * 1000003] = 1; }

__global__ void outside(int *array) {
    if (threadIdx.x == 37)
        poke(array, threadIdx.x);
}

__global__ void beyond_lds(int *array) {
    extern __shared__ int shared[];
    shared[threadIdx.x + 100000] = 1;
    *array = shared[*array];
}

__global__ void trap(int *array) {
    if (*array == 0)
        __builtin_trap();
}

__global__ void asserts(int *array) { assert(*array == 1); }

__global__ void unknown(int *) { asm volatile("image_load v0, v[0:1], s[0:7] dmask:0x1 dim:SQ_RSRC_IMG_2D"); }

int main(int, char **arguments) {
    int *array = upload(std::vector<int>(64));
    std::string_view mode = arguments[1];
    if (mode == "outside")
        outside<<<2, 64>>>(array);
    if (mode == "lds")
        beyond_lds<<<1, 1, 64>>>(array);
    if (mode == "trap")
        trap<<<1, 1>>>(array);
    if (mode == "assert")
        asserts<<<1, 1>>>(array);
    if (mode == "unknown")
        unknown<<<1, 1>>>(array);
    HIP(hipDeviceSynchronize());
    return finish();
}
