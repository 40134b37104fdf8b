// A code object with as many counters as one of RCCL's: 8 kernels with 320 branches each. Compiled once for each number
// N, so that no two code objects are equal.
#include "hip_min.h"

#define PASTE(a, b) a##b
#define NAME(a, n) PASTE(a, n)
#define TWICE(x) x x
#define TEN(x) x x x x x x x x x x
// Each use is another branch with its own counter.
#define BRANCH if (out[__COUNTER__ & 63] == N) out[1]++;
#define BRANCHES TEN(TWICE(TWICE(TWICE(TWICE(TWICE(BRANCH))))))
#define KERNEL(k) extern "C" __global__ void NAME(kernel_##k##_, N)(int *out) { if (*out == -1) { BRANCHES } }

KERNEL(0)
KERNEL(1)
KERNEL(2)
KERNEL(3)
KERNEL(4)
KERNEL(5)
KERNEL(6)
KERNEL(7)
