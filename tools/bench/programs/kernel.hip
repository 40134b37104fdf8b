// Compiled once for each number N, so that no two code objects are equal.
#include "hip_min.h"

#define PASTE(a, b) a##b
#define NAME(a, n) PASTE(a, n)

extern "C" __global__ void NAME(kernel_, N)(int *out) {
  if (*out % 2 == 0)
    *out += N;
  else
    *out -= N;
}

#if !defined(MODULE)
void NAME(launch_, N)(int *out) {
  void *arguments[] = {&out};
  hipLaunchKernel((const void *)NAME(kernel_, N), {1, 1, 1}, {32, 1, 1}, arguments, 0, nullptr);
}
#endif
