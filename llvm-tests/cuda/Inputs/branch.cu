// A kernel and a device function with branches, in one source file.
#include <cstdio>
#include <cuda_runtime.h>

__device__ __noinline__ int halved(int x) {
    if (x % 2)
        return x;
    return x / 2;
}

__global__ void branch(int *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = halved(i);
}

int main() {
    int *out;
    cudaMalloc(&out, 1000 * sizeof(int));
    branch<<<4, 256>>>(out, 1000);
    cudaError_t error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorString(error));
    return error != cudaSuccess;
}
