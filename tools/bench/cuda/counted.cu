// The module of modules.cu: four functions, eight variables with counters.
__device__ __noinline__ int half(int x) { return x & 1 ? x : x / 2; }
__device__ __noinline__ int clamp(int x) { return x > 100 ? 100 : x; }

extern "C" __global__ void counted(int *out, int items) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < items)
        out[i] = half(i) + clamp(i);
}

extern "C" __global__ void unused(int *out) { out[threadIdx.x] = 1; }
