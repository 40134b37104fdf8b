// A function that only some code objects contain, and templates whose instances differ.
#include <hip/hip_runtime.h>

__device__ inline void put(int *out, int value) {
  if (value > 0)
    out[threadIdx.x] = value;
#ifdef NEVER
  out[0] = 0;
#endif
}

template <int N> __global__ void fill(int *out) {
#ifdef TWICE
  out[threadIdx.x + N] = 2;
#endif
  if (threadIdx.x < N)
    put(out, N);
}

template <int N> __global__ void clear(int *out) {
#ifdef TWICE
  if (threadIdx.x > N)
    return;
#else
  out[N] = 1;
#endif
  out[threadIdx.x] = 0;
}
