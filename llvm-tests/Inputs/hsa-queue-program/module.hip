#include <hip/hip_runtime.h>
extern "C" __global__ void entry(int *out, int n) {
    for (int i = 0; i < n; i++)
        atomicAdd(out, i);
}
