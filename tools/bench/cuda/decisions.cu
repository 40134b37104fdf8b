// What MC/DC costs: kernels with decisions of three to six conditions. Prints the median time of each kernel in microseconds.
#include "measure.h"

constexpr int N = 1 << 20, SIDE = 1024, TRIANGLES = 64, BOXES = 4096, LENGTH = 64;

// Which triangle is the nearest one at each point.
__global__ void rasterize(const float *corners, int *out) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    float nearest = 1e9f;
    int found = -1;
    for (int n = 0; n < TRIANGLES; n++) {
        const float *t = corners + 7 * n;
        float a = (t[2] - t[0]) * (y - t[1]) - (t[3] - t[1]) * (x - t[0]);
        float b = (t[4] - t[2]) * (y - t[3]) - (t[5] - t[3]) * (x - t[2]);
        float c = (t[0] - t[4]) * (y - t[5]) - (t[1] - t[5]) * (x - t[4]);
        if (a >= 0 && b >= 0 && c >= 0 && t[6] < nearest) {
            nearest = t[6];
            found = n;
        }
    }
    out[y * SIDE + x] = found;
}

// A step of Conway's game of life.
__global__ void life(const int *in, int *out) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x < 1 || y < 1 || x >= SIDE - 1 || y >= SIDE - 1)
        return;
    int neighbours = 0;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++)
            neighbours += (dx != 0 || dy != 0) && (in[(y + dy) * SIDE + x + dx] & 1);
    int alive = in[y * SIDE + x] & 1;
    out[y * SIDE + x] = (alive && (neighbours == 2 || neighbours == 3)) || (!alive && neighbours == 3);
}

// The rows of a table that a query selects.
__global__ void select_rows(const int *values, int *out) {
    int sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < N; i += gridDim.x * blockDim.x) {
        int price = values[i] & 1023, quantity = values[i] >> 10 & 63, region = values[i] >> 16 & 7;
        if ((price < 600 && quantity > 20 && (region == 2 || region == 5)) || quantity == 63)
            sum += price;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// With how many others each box overlaps.
__global__ void collide(const float *low, const float *high, int *out) {
    __shared__ float from[3][256], to[3][256];
    int i = blockIdx.x * 256 + threadIdx.x, count = 0;
    for (int first = 0; first < BOXES; first += 256) {
        for (int axis = 0; axis < 3; axis++) {
            from[axis][threadIdx.x] = low[axis * BOXES + first + threadIdx.x];
            to[axis][threadIdx.x] = high[axis * BOXES + first + threadIdx.x];
        }
        __syncthreads();
        for (int n = 0; n < 256; n++)
            if (low[i] <= to[0][n] && high[i] >= from[0][n] && low[BOXES + i] <= to[1][n] && high[BOXES + i] >= from[1][n] &&
                low[2 * BOXES + i] <= to[2][n] && high[2 * BOXES + i] >= from[2][n])
                count++;
        __syncthreads();
    }
    out[i] = count;
}

// The number of words in each text of LENGTH characters.
__global__ void words(const char *texts, int *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, count = 0;
    bool is_inside = false;
    for (int n = 0; n < LENGTH; n++) {
        char c = texts[n * (N / LENGTH) + i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (is_letter && (!is_inside || n == 0))
            count++;
        is_inside = is_letter;
    }
    out[i] = count;
}

int main() {
    std::vector<int> values(N);
    std::vector<float> corners(7 * TRIANGLES), low(3 * BOXES), high(3 * BOXES);
    std::vector<char> texts(N);
    unsigned random = 12345;
    auto below = [&](unsigned limit) { return (random = random * 1664525 + 1013904223) >> 8 & (limit - 1); };
    for (int &each : values)
        each = below(N);
    for (char &each : texts)
        each = 32 + below(64) + below(32);
    for (float &each : corners)
        each = below(SIDE);
    for (int i = 0; i < 3 * BOXES; i++)
        low[i] = below(SIDE), high[i] = low[i] + below(128);
    int *in = copy_of(values), *out = copy_of(values);
    float *triangles = copy_of(corners), *from = copy_of(low), *to = copy_of(high);
    char *characters = copy_of(texts);
    constexpr int ROUNDS = 13;
    measure("rasterize", [&] { rasterize<<<dim3(SIDE / 256, SIDE), 256>>>(triangles, out); }, ROUNDS);
    measure("life", [&] { life<<<dim3(SIDE / 256, SIDE), 256>>>(in, out); }, ROUNDS);
    measure("select rows", [&] { select_rows<<<512, 256>>>(in, out); }, ROUNDS);
    measure("collide", [&] { collide<<<BOXES / 256, 256>>>(from, to, out); }, ROUNDS);
    measure("words", [&] { words<<<N / LENGTH / 256, 256>>>(characters, out); }, ROUNDS);
}
