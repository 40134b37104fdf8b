// The plugin that keeps flags in registers compiles a loop with several exits, each of which has a flag: to split one of them may
// change the branches of the others.
//
// REQUIRES: cuda, debian
// RUN: clang++-23 %cuda_headers -x cuda --offload-arch=sm_90 -Wno-unknown-cuda-version --cuda-path=%cuda_path -O2 -Xclang -fprofile-instrument=clang -Xclang -fcoverage-mapping -include %repo/src/device/device-rt/cuda.h %flags %keep_flags --offload-device-only -S %s -o exits.ptx
// RUN: grep -c 'st.global.b8 .*, 0' exits.ptx
#include <cuda_runtime.h>

__device__ __attribute__((noinline)) unsigned recurse(unsigned depth, unsigned i) {
    if (depth == 0 || (i & 3) == 1)
        return i;
    return recurse(depth - 1, i + 1) + (i & 8 ? 1 : 2);
}

__global__ void kernel(unsigned *out, unsigned n) {
    unsigned i = threadIdx.x, x = i + n;
    unsigned k2 = ((i / 64 * 3 + i)) % 7;
    do {
        unsigned k3 = ((x + 7u)) % 1;
        while (k3-- > 0) {
            unsigned k4 = ((i ^ 7u)) % 2;
            while (k4-- > 0) {
                if (((i * 2654435761u >> 28) & 1) || (i / 32 * 3 + i / 32) > 9) return;
            }
            unsigned k5 = (n) % 2;
            while (k5-- > 0) {
                if ((i * 3 + 7u) % 4 == 1) break;
                unsigned k6 = ((7u ^ (x >> 3))) % 5;
                do {
                    x += recurse(x % 4, i);
                    if ((7u + 7u) % 5 == 0) break;
                } while (k6 && --k6 > 0);
            }
        }
        if ((((x >> 3) ^ x) & 1) || (i / 32 ^ (x >> 3)) > 9) break;
    } while (k2 && --k2 > 0);
    out[i] = x;
}
