// The program for coverage: two kernels and a device function, one branch of which is never taken.
#include <hip/hip_runtime.h>
#include <cstdio>
#include <vector>

__device__ float clip(float x) {
  if (x > 1.0f)
    return 1.0f;
  if (x < -1.0f)
    return -1.0f; // never executed: no sample is negative
  return x;
}

__global__ void make_wave(float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float x = 2.0f * i / n;
  out[i] = clip(x * x);
}

__global__ void count_clipped(const float *in, int n, int *count) {
  for (int i = threadIdx.x; i < n; i += blockDim.x)
    if (in[i] == 1.0f)
      atomicAdd(count, 1);
}

int main() {
  const int n = 1000;
  float *wave;
  int *count, clipped = 0;
  if (hipMalloc(&wave, n * sizeof *wave) != hipSuccess || hipMalloc(&count, sizeof *count) != hipSuccess) {
    fprintf(stderr, "no GPU memory\n");
    return 1;
  }
  if (hipMemset(count, 0, sizeof *count) != hipSuccess)
    return 1;
  make_wave<<<(n + 255) / 256, 256>>>(wave, n);
  count_clipped<<<1, 64>>>(wave, n, count);
  if (hipMemcpy(&clipped, count, sizeof clipped, hipMemcpyDeviceToHost) != hipSuccess)
    return 1;
  printf("%d of %d samples are clipped\n", clipped, n);
  return 0;
}
