// For programs for GPUs that have no precompiled headers (%hip_headers): device code without HIP's headers, which would take most
// of the time of the compilation, with `-Xarch_device -nogpuinc`. Host code, such as `main`, is in #ifndef __HIP_DEVICE_COMPILE__.
#pragma once
#ifdef __HIP_DEVICE_COMPILE__
#define __global__ __attribute__((global))
#else
#include "check.h"
#endif

// 64 threads, of which 40 take the branch.
__global__ void kernel(int *out) {
    int i = __builtin_amdgcn_workitem_id_x();
    if (i < 40)
        out[i] = 1;
}
