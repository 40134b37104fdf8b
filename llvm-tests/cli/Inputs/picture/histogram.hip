// A histogram with counters in LDS. One architecture has lines that the other does not have.
#include "image.h"

__device__ void add(unsigned *bins, int value) {
#if defined(__gfx1201__)
  if (value < 0)
    return;
#endif
  atomicAdd(&bins[value], 1u);
}

__global__ void count_values(Image in, unsigned *bins) {
  __shared__ unsigned own[16];
  if (threadIdx.x < 16)
    own[threadIdx.x] = 0;
  __syncthreads();
  for (int i = threadIdx.x; i < in.width * in.height; i += blockDim.x)
    add(own, in.pixels[i] / 16);
  __syncthreads();
  if (threadIdx.x < 16)
    bins[threadIdx.x] = own[threadIdx.x];
}

void histogram(Image in, unsigned *bins) { count_values<<<1, 64>>>(in, bins); }
