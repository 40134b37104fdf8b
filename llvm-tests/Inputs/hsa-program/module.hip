#include <hip/hip_runtime.h>
extern "C" __global__ void entry(int *out) {
    int i = threadIdx.x;
    if (i < 16)
        out[i] = i;
}
