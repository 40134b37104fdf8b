// PGO of a tiled matrix product: the device's counts become branch weights in the optimized code.
//
// RUN: %hip_cxx -fprofile-generate %exact -O2 %s -o a %devprof_a
// RUN: env LLVM_PROFILE_FILE=raw/%%p.profraw ./a && env LLVM_PROFILE_FILE=raw/%%p.profraw ./a
// RUN: %devprof merge raw -o a.profdata | FileCheck %s --check-prefix=MERGED
// RUN: %counts a.profdata | FileCheck %s --check-prefix=COUNTS
// RUN: %hip_cxx -fprofile-use=a.profdata -O2 -fno-unroll-loops --offload-device-only -S -emit-llvm %s -o used.ll
// RUN: FileCheck %s --input-file used.ll
#include "check.h"

constexpr int TILE = 16;

__global__ void product(const float *a, const float *b, float *c, int n) {
    __shared__ float as[TILE][TILE], bs[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;
    float sum = 0;
    for (int k = 0; k < n; k += TILE) {
        as[y][x] = row < n && k + x < n ? a[row * n + k + x] : 0;
        bs[y][x] = k + y < n && column < n ? b[(k + y) * n + column] : 0;
        __syncthreads();
        for (int i = 0; i < TILE; ++i)
            sum += as[y][i] * bs[i][x];
        __syncthreads();
    }
    if (row < n && column < n)
        c[row * n + column] = sum;
}

int main() {
    constexpr int n = 40;
    float *a, *b, *c;
    CHECK(hipMallocManaged(&a, n * n * sizeof *a));
    CHECK(hipMallocManaged(&b, n * n * sizeof *b));
    CHECK(hipMallocManaged(&c, n * n * sizeof *c));
    for (int i = 0; i < n * n; ++i) {
        a[i] = i % n == i / n;
        b[i] = i;
    }
    dim3 blocks((n + TILE - 1) / TILE, (n + TILE - 1) / TILE);
    product<<<blocks, dim3(TILE, TILE)>>>(a, b, c, n);
    CHECK(hipDeviceSynchronize());
    for (int i = 0; i < n * n; ++i)
        if (c[i] != b[i])
            return 1;
}

// Two runs with 9 blocks of 256 threads are 4608 threads. Each of them iterates over three tiles: 13824 iterations. The
// 40 * 40 elements of a are loaded by each of the three columns of blocks, and those of b by each of the three rows: 9600
// loads of each matrix in two runs. 3200 threads compute an element of c.
// MERGED: {{^}}a.profdata: 4 files, {{[0-9]+}} functions, gfx1100 and host; llvm-profdata 23.
// COUNTS: {{^}}_Z7productPKfS0_Pfi: [221184, 13824, 9600, 9600, 4608, 3200, 11520]{{$}}
// COUNTS: {{^}}main: [3200,

// CHECK: define {{.*}} @_Z7productPKfS0_Pfi({{.*}} !prof [[ENTRY:![0-9]+]]
// CHECK: br i1 {{.*}} !prof [[STORE:![0-9]+]], !block.uniformity.profile
// CHECK: br i1 {{.*}} !prof [[LOAD:![0-9]+]], !block.uniformity.profile
// CHECK: br i1 {{.*}} !prof [[LOAD]]{{$}}
// CHECK: br i1 {{.*}} !prof [[SUM:![0-9]+]], !llvm.loop
// CHECK: br i1 {{.*}} !prof [[SUM:![0-9]+]], !llvm.loop
// CHECK-DAG: [[ENTRY]] = !{!"function_entry_count", i64 4608}
// CHECK-DAG: [[LOAD]] = !{!"branch_weights", i32 9600, i32 4224}
// CHECK-DAG: [[STORE]] = !{!"branch_weights", i32 3200, i32 1408}
// CHECK-DAG: [[SUM]] = !{!"branch_weights", i32 13824, i32 207360}
