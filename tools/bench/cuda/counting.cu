// What exact counting costs. Prints the median time of each kernel in microseconds.
//
// Every kernel does the same work in every run, so its counts are the same in all variants of this program.
#include "measure.h"

constexpr int N = 1 << 20, SIDE = 1024, TILE = 16;

__global__ void matmul(const float *a, const float *b, float *c) {
    __shared__ float x[TILE][TILE], y[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < SIDE; k += TILE) {
        x[threadIdx.y][threadIdx.x] = a[row * SIDE + k + threadIdx.x];
        y[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * SIDE + column];
        __syncthreads();
        for (int n = 0; n < TILE; n++)
            sum += x[threadIdx.y][n] * y[n][threadIdx.x];
        __syncthreads();
    }
    c[row * SIDE + column] = sum;
}

// A point and its eight neighbours; negative values count half.
__global__ void stencil(const float *in, float *out) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x < 1 || y < 1 || x >= SIDE - 1 || y >= SIDE - 1)
        return;
    float sum = 0;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++) {
            float value = in[(y + dy) * SIDE + x + dx];
            sum += value > 0 ? value : value / 2;
        }
    out[y * SIDE + x] = sum;
}

__global__ void mandelbrot(int *out) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float re = 3.f * x / SIDE - 2, im = 2.f * y / SIDE - 1, a = 0, b = 0;
    int n = 0;
    while (n < 256 && a * a + b * b < 4) {
        float next = a * a - b * b + re;
        b = 2 * a * b + im;
        a = next;
        n++;
    }
    out[y * SIDE + x] = n;
}

__global__ void reduction(const int *in, int *out) {
    __shared__ int sums[256];
    int sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += gridDim.x * blockDim.x)
        sum += in[i];
    sums[threadIdx.x] = sum;
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half)
            sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0)
        out[blockIdx.x] = sums[0];
}

__global__ void histogram(const int *in, int *out) {
    __shared__ int bins[256];
    bins[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += gridDim.x * blockDim.x)
        atomicAdd(&bins[in[i] >> 8 & 255], 1);
    __syncthreads();
    if (bins[threadIdx.x] > 0)
        atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
}

// A step of a bitonic sort.
__global__ void sort_step(const int *in, int *out, int distance, int size) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, other = i ^ distance;
    int a = in[i], b = in[other];
    bool ascends = (i & size) == 0, is_lower = i < other;
    if (ascends == is_lower)
        out[i] = a < b ? a : b;
    else
        out[i] = a > b ? a : b;
}

// A level of a breadth-first search.
__global__ void bfs(const int *edges, const int *level, int *next, int depth) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (level[i] == depth)
        for (int n = 0, degree = 1 + (edges[i] & 7); n < degree; n++) {
            int to = (edges[i] * (n + 3) + n * 7919) & (N - 1);
            if (level[to] < 0)
                next[to] = depth + 1;
        }
}

constexpr int BODIES = 8192;

__global__ void nbody(const float4 *bodies, float4 *forces) {
    __shared__ float4 tile[256];
    float4 self = bodies[blockIdx.x * 256 + threadIdx.x], force = {};
    for (int first = 0; first < BODIES; first += 256) {
        tile[threadIdx.x] = bodies[first + threadIdx.x];
        __syncthreads();
        for (int n = 0; n < 256; n++) {
            float x = tile[n].x - self.x, y = tile[n].y - self.y, z = tile[n].z - self.z;
            float inverse = rsqrtf(x * x + y * y + z * z + 1e-3f), weight = tile[n].w * inverse * inverse * inverse;
            force.x += x * weight, force.y += y * weight, force.z += z * weight;
        }
        __syncthreads();
    }
    forces[blockIdx.x * 256 + threadIdx.x] = force;
}

// A tree whose nodes say how to choose a child.
__device__ int by_bit(int value, int node) { return value >> (node & 15) & 1; }
__device__ int by_size(int value, int node) { return (value & 1023) > (node & 1023); }
__device__ int by_rest(int value, int node) { return value % (node + 3) == 0; }
__device__ int (*const choose[])(int, int) = {by_bit, by_size, by_rest};

__global__ void tree_walk(const int *in, int *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, value = in[i], node = 1;
    while (node < 1 << 16)
        node = 2 * node + choose[node % 3](value, node);
    out[i] = node;
}

__global__ void branches(const int *in, int *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, value = in[i], result = 0;
    for (int n = 0; n < 64; n++) {
        switch (value >> n % 24 & 7) {
        case 0: result += value; break;
        case 1: result ^= value >> 3; break;
        case 2: result -= n; break;
        case 3: result = result * 31 + n; break;
        case 4: if (result < 0) result = -result; break;
        case 5: result |= n; break;
        default: if (result & 1) result >>= 1; else if (n & 1) result += 3;
        }
        value = value * 1664525 + 1013904223;
    }
    out[i] = result;
}

int main() {
    std::vector<int> values(N), levels(N, -1);
    std::vector<float> reals(N);
    std::vector<float4> positions(BODIES);
    unsigned random = 12345;
    for (int i = 0; i < N; i++) {
        random = random * 1664525 + 1013904223;
        values[i] = random >> 1;
        reals[i] = (int)random * 1e-9f;
    }
    for (int i = 0; i < BODIES; i++)
        positions[i] = {reals[i], reals[i + BODIES], reals[i + 2 * BODIES], 1};
    for (int i = 0; i < 1024; i++)
        levels[i * 1021] = 0;
    int *in = copy_of(values), *out = copy_of(values), *level = copy_of(levels), *next = copy_of(levels);
    float *a = copy_of(reals), *b = copy_of(reals), *c = copy_of(reals);
    float4 *bodies = copy_of(positions), *forces = copy_of(positions);
    constexpr int ROUNDS = 13;
    dim3 tiles(SIDE / TILE, SIDE / TILE), tile(TILE, TILE);
    measure("matmul", [&] { matmul<<<tiles, tile>>>(a, b, c); }, ROUNDS);
    measure("stencil", [&] { stencil<<<dim3(SIDE / 256, SIDE), 256>>>(a, c); }, ROUNDS);
    measure("mandelbrot", [&] { mandelbrot<<<tiles, tile>>>(out); }, ROUNDS);
    measure("reduction", [&] { reduction<<<512, 256>>>(in, out); }, ROUNDS);
    measure("histogram", [&] { histogram<<<512, 256>>>(in, out); }, ROUNDS);
    measure("sort step", [&] { sort_step<<<N / 256, 256>>>(in, out, 64, 1024); }, ROUNDS);
    measure("bfs", [&] {
        for (int depth = 0; depth < 2; depth++)
            bfs<<<N / 256, 256>>>(in, level, next, depth);
    }, ROUNDS);
    measure("n-body", [&] { nbody<<<BODIES / 256, 256>>>(bodies, forces); }, ROUNDS);
    measure("tree walk", [&] { tree_walk<<<N / 256, 256>>>(in, out); }, ROUNDS);
    measure("branches", [&] { branches<<<N / 256, 256>>>(in, out); }, ROUNDS);
}
