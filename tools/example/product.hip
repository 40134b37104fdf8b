// Multiplies two matrices, tile by tile: the program for PGO. The matrix size is not a multiple of the tile size, so the
// tiles at two edges are partly empty.
#include <hip/hip_runtime.h>
#include <cstdio>
#include <cstdlib>

constexpr int tile = 16;

static void check(hipError_t error) {
    if (error != hipSuccess) {
        fprintf(stderr, "%s\n", hipGetErrorString(error));
        exit(1);
    }
}

__global__ void product(const float *a, const float *b, float *c, int n) {
    __shared__ float as[tile][tile], bs[tile][tile];
    int x = threadIdx.x, y = threadIdx.y;
    int row = blockIdx.y * tile + y, column = blockIdx.x * tile + x;
    float sum = 0;
    for (int k = 0; k < n; k += tile) {
        as[y][x] = row < n && k + x < n ? a[row * n + k + x] : 0;
        bs[y][x] = k + y < n && column < n ? b[(k + y) * n + column] : 0;
        __syncthreads();
        for (int i = 0; i < tile; ++i)
            sum += as[y][i] * bs[i][x];
        __syncthreads();
    }
    if (row < n && column < n)
        c[row * n + column] = sum;
}

int main() {
    constexpr int n = 50, tiles = (n + tile - 1) / tile;
    float *a, *b, *c;
    for (float **matrix : {&a, &b, &c})
        check(hipMallocManaged(matrix, n * n * sizeof(float)));
    for (int i = 0; i < n * n; ++i) {
        a[i] = i % n == i / n ? 2 : 0;
        b[i] = i % 7;
    }
    product<<<dim3(tiles, tiles), dim3(tile, tile)>>>(a, b, c, n);
    check(hipGetLastError());
    check(hipDeviceSynchronize());
    double sum = 0;
    for (int i = 0; i < n * n; ++i)
        sum += c[i];
    printf("the sum is %g\n", sum);
}
