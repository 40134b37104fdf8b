// After a kernel that fails, the process cannot use the GPU any more. Its counters are lost, which is reported in one line.
// The program's own exit status stays.
//
// VARIANTS: preload archive
// GPU: for kind in trap address assert; do status=0; LLVM_PROFILE_FILE=$kind.profraw %a $kind 2> $kind.err || status=$?; echo "$kind $status $(grep -c ^devprof: $kind.err) $(grep -c '^devprof: .*: its counts are lost, because a kernel has failed (CUDA error' $kind.err)"; done
//
// CHECK: stdout: trap 5 1 1
// CHECK: stdout: address 5 1 1
// CHECK: stdout: assert 5 1 1
// CHECK: address.profraw: main
// CHECK: assert.profraw: main
// CHECK: trap.profraw: main
#include "check.h"
#include <assert.h>
#include <string.h>

__global__ void kernel(int *out, int kind) {
    if (kind == 't')
        asm volatile("trap;");
    if (kind == 's')
        assert(threadIdx.x != 5);
    out[threadIdx.x] = 1;
}

int main(int, char **argv) {
    bool is_address = !strcmp(argv[1], "address");
    kernel<<<1, 64>>>(is_address ? (int *)64 : device_ints(64), is_address ? 0 : argv[1][0] == 't' ? 't' : 's');
    return cudaDeviceSynchronize() == cudaSuccess ? 0 : 5;
}
