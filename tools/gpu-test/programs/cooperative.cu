// Cooperative groups: all blocks of a grid wait for each other, and parts of warps work together.
//
// VARIANTS: O2 O0 O2+rdc
// 8 blocks of 128 threads. Four rounds; in each the first thread of the grid takes the branch. Tiles of 16 threads: one
// of them takes the branch.
// CHECK: sm_90.default.profraw: _Z4gridPi: [1024, 4096, 4]
// CHECK: sm_90.default.profraw: _Z5tilesPi: [1024, 64]
#include "check.h"
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__global__ void grid(int *out) {
    cg::grid_group all = cg::this_grid();
    for (int round = 0; round < 4; round++) {
        if (all.thread_rank() == 0)
            *out += round;
        all.sync();
    }
}

__global__ void tiles(int *out) {
    auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    int sum = tile.shfl_xor((int)threadIdx.x, 1);
    if (tile.thread_rank() == 0)
        atomicAdd(out, sum);
}

int main() {
    int *out = device_ints(1);
    void *arguments[] = {&out};
    CHECK(cudaLaunchCooperativeKernel((void *)grid, dim3(8), dim3(128), arguments, 0, nullptr));
    tiles<<<8, 128>>>(out);
    CHECK(cudaDeviceSynchronize());
}
