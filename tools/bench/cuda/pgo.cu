// Kernels whose speed may depend on a profile (PGO). Prints the median time of each in microseconds.
//
// With relocatable device code, `call` calls a function of pgo-unit.cu; otherwise, this file includes it.
#include "measure.h"
#ifdef RDC
__device__ int collatz(unsigned n);
#else
#include "pgo-unit.cu"
#endif

constexpr int N = 1 << 20;

// Many rare conditions. One value in 4096 takes the expensive branch.
__global__ void branchy(const int *in, int *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, v = in[i], r = 0;
    for (int n = 0; n < 64; n++) {
        if ((v & 4095) == 7)
            for (int k = 0; k < 100; k++)
                r = r * 31 + k;
        else if ((v & 255) == 3)
            r ^= v * 17;
        else if (v < 0)
            r -= __popc(v);
        else
            r += v;
        v = v * 1664525 + 1013904223;
    }
    out[i] = r;
}

// The lanes of a warp leave the loop at different times.
__global__ void divergent(const int *in, int *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned v = in[i];
    int steps = 0;
    while (v % 97 != 0 && steps < 500) {
        v = v & 1 ? 3 * v + 1 : v / 2 + 12345;
        steps++;
    }
    out[i] = steps;
}

__device__ int add(int x) { return x + 1; }
__device__ int twice(int x) { return 2 * x; }
__device__ int negate(int x) { return -x; }
__device__ int (*const table[])(int) = {add, twice, negate};

// Calls through pointers; nearly always the same function.
__global__ void pointers(const int *in, int *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, r = in[i];
    for (int n = 0; n < 64; n++)
        r = table[(r & 1023) == 0 ? 1 : (r & 1023) == 1 ? 2 : 0](r);
    out[i] = r;
}

// Loops with a trip count that only the profile shows: nearly always 4.
__global__ void loops(const int *in, const int *counts, int *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, r = 0;
    for (int n = 0; n < 32; n++)
        for (int k = 0, end = counts[(i + n) & (N - 1)]; k < end; k++)
            r += in[(i + k * 32) & (N - 1)] * k;
    out[i] = r;
}

// A device function in another translation unit.
__global__ void call(const int *in, int *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = collatz(in[i] & 0xffff);
}

// A step of a dynamic program over a grid, as in Rodinia's pathfinder: in shared memory, with borders.
__global__ void pathfinder(const int *wall, const int *from, int *to, int rows) {
    __shared__ int previous[256], result[256];
    int tx = threadIdx.x, x = blockIdx.x * (256 - 2 * 8) + tx - 8;
    bool is_valid = x >= 0 && x < N;
    previous[tx] = is_valid ? from[x] : 0x7fffffff;
    __syncthreads();
    for (int row = 0; row < rows; row++) {
        if (tx >= row + 1 && tx <= 254 - row && is_valid) {
            int left = previous[tx - 1], up = previous[tx], right = previous[tx + 1];
            result[tx] = min(left, min(up, right)) + wall[((row << 12) + x) & (N - 1)];
        }
        __syncthreads();
        if (row < rows - 1)
            previous[tx] = result[tx];
        __syncthreads();
    }
    if (tx >= 8 && tx < 248 && is_valid)
        to[x] = result[tx];
}

// Breadth-first search, one level, as in Rodinia's bfs: most nodes are not in the frontier.
__global__ void bfs(const int *in, int *level, int depth) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (level[i] != depth)
        return;
    for (int n = 0, degree = 1 + (in[i] & 7); n < degree; n++) {
        int to = (in[i] * (n + 3) + n * 7919) & (N - 1);
        if (level[to] < 0)
            level[to] = depth + 1;
    }
}

int main() {
    std::vector<int> values(N), few(N);
    unsigned random = 12345;
    for (int i = 0; i < N; i++) {
        random = random * 1664525 + 1013904223;
        values[i] = random >> 1;
        few[i] = random % 1000 ? 4 : 40;
    }
    int *in, *out, *counts;
    CHECK(cudaMalloc(&in, N * sizeof(int)));
    CHECK(cudaMalloc(&out, N * sizeof(int)));
    CHECK(cudaMalloc(&counts, N * sizeof(int)));
    CHECK(cudaMemcpy(in, values.data(), N * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(counts, few.data(), N * sizeof(int), cudaMemcpyHostToDevice));
    measure("branchy", [&] { branchy<<<N / 256, 256>>>(in, out); });
    measure("divergent", [&] { divergent<<<N / 256, 256>>>(in, out); });
    measure("function pointers", [&] { pointers<<<N / 256, 256>>>(in, out); });
    measure("loops", [&] { loops<<<N / 256, 256>>>(in, counts, out); });
    measure("call", [&] { call<<<N / 256, 256>>>(in, out); });
    measure("pathfinder", [&] { pathfinder<<<N / 240, 256>>>(in, counts, out, 8); });
    measure("bfs", [&] {
        cudaMemsetAsync(out, 255, N * sizeof(int));
        cudaMemsetAsync(out, 0, 4096);
        for (int depth = 0; depth < 10; depth++)
            bfs<<<N / 256, 256>>>(in, out, depth);
    });
}
