// Accesses of all widths and alignments in global memory, LDS and scratch, and through generic pointers. Workgroups that
// cooperate in LDS.
#include "check.h"

constexpr int threads = 96;
constexpr int stride = 80;

enum Space { Global, Lds, Scratch, Flat };

template <int N> __device__ __attribute__((noinline)) void copy_anywhere(uint8_t *to, const uint8_t *from) {
    __builtin_memcpy(to, from, N);
}

// Each lane copies N bytes from an odd offset in its part of `from` to an odd offset in its part of `to`, through the
// address space.
template <int N, Space space> __global__ void copies(uint8_t *to, const uint8_t *from, int shift) {
    __shared__ uint8_t shared[threads * stride];
    uint8_t local[stride];
    int i = threadIdx.x, g = blockIdx.x * threads + i;
    const uint8_t *source = from + g * stride + (g * 7 + shift) % 16;
    uint8_t *target = to + g * stride + (g * 3 + shift) % 16;
    uint8_t *buffer = space == Lds ? shared + i * stride : space == Scratch ? local : i % 3 == 0 ? shared + i * stride : i % 3 == 1 ? local : target;
    int offset = space == Flat && i % 3 == 2 ? 0 : (g * 5 + shift) % 16;
    if constexpr (space == Global) {
        __builtin_memcpy(target, source, N);
    } else if constexpr (space == Flat) {
        copy_anywhere<N>(buffer + offset, source);
        copy_anywhere<N>(target, buffer + offset);
    } else if constexpr (space == Lds) {
        __builtin_memcpy(shared + i * stride + offset, source, N);
        __builtin_memcpy(target, shared + i * stride + offset, N);
    } else {
        for (int k = 0; k < stride; ++k)
            local[k] = uint8_t(k);
        __builtin_memcpy(local + offset, source, N);
        __builtin_memcpy(target, local + offset, N);
        // The byte after the copied bytes must not change.
        to[g * stride + stride - 1] = local[offset + N];
    }
}

void test_copy(int n, Space space, void (*kernel)(uint8_t *to, const uint8_t *from, int shift)) {
    const char *const spaces[] = {"global", "LDS", "scratch", "flat"};
    char name[60];
    std::snprintf(name, sizeof name, "copy of %d bytes, %s", n, spaces[space]);
    Report report(name);
    size_t lanes = 2 * threads;
    std::vector<uint8_t> from(lanes * stride), to(lanes * stride, 0xa5);
    for (auto &byte : from)
        byte = uint8_t(next_random());
    uint8_t *device_from = upload(from), *device_to = upload(to);
    for (int shift : {0, 3}) {
        kernel<<<2, threads>>>(device_to, device_from, shift);
        for (size_t g = 0; g < lanes; ++g) {
            std::memcpy(&to[g * stride + (g * 3 + shift) % 16], &from[g * stride + (g * 7 + shift) % 16], n);
            if (space == Scratch)
                to[g * stride + stride - 1] = uint8_t((g * 5 + shift) % 16 + n);
        }
    }
    auto got = download(device_to, to.size());
    for (size_t i = 0; i < to.size(); ++i)
        report.equal(i, to[i], got[i]);
}

template <int... N> void test_copies() {
    (test_copy(N, Global, copies<N, Global>), ...);
    (test_copy(N, Lds, copies<N, Lds>), ...);
    (test_copy(N, Scratch, copies<N, Scratch>), ...);
    (test_copy(N, Flat, copies<N, Flat>), ...);
}

// Aligned accesses by type: signed and unsigned bytes and halves are extended, vectors are one access.
template <class T> __global__ void elements(T *out, const T *in, int n, int step) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[(i * step + 5) % n];
}

struct Words {
    uint32_t word[13];
};

template <class T> void test_elements(const char *name) {
    Report report(name);
    int n = 777, words = (n * sizeof(T) + 3) / 4 + 1;
    std::vector<uint32_t> bits(words);
    for (auto &word : bits)
        word = uint32_t(next_random());
    const T *in = reinterpret_cast<const T *>(upload(bits));
    T *out = reinterpret_cast<T *>(upload(bits));
    elements<<<7, 128>>>(out, in, n, 13);
    auto got = download(reinterpret_cast<uint8_t *>(out), n * sizeof(T));
    auto *bytes = reinterpret_cast<const uint8_t *>(bits.data());
    for (int i = 0; i < n; ++i)
        for (size_t k = 0; k < sizeof(T); ++k) {
            uint8_t expected = bytes[(i * 13 + 5) % n * sizeof(T) + k], byte = got[i * sizeof(T) + k];
            report.equal(i, expected, byte);
        }
}

// Narrow loads that keep or clear the rest of the register.
__global__ void narrow(int64_t *out, const int8_t *a, const uint8_t *b, const int16_t *c, const uint16_t *d, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    __shared__ int8_t shared_a[128];
    __shared__ uint16_t shared_d[128];
    shared_a[threadIdx.x] = int8_t(a[i] + 1);
    shared_d[threadIdx.x] = uint16_t(d[i] * 3);
    uint32_t both = uint32_t(uint16_t(c[i])) << 16 | d[(i + 1) % n];
    out[i] = a[i] + b[i] * 1000 + int64_t(c[i]) * 1000000 + int64_t(d[i]) * 100000000000 + shared_a[threadIdx.x] +
             shared_d[threadIdx.x] + (int64_t(both) << 20);
}

void test_narrow() {
    Report report("narrow loads");
    auto a = inputs<int8_t>();
    auto b = inputs<uint8_t>();
    auto c = inputs<int16_t>();
    auto d = inputs<uint16_t>();
    int64_t *out = upload(std::vector<int64_t>(count));
    narrow<<<(count + 127) / 128, 128>>>(out, upload(a), upload(b), upload(c), upload(d), count);
    auto got = download(out, count);
    for (size_t i = 0; i < count; ++i) {
        uint32_t both = uint32_t(uint16_t(c[i])) << 16 | d[(i + 1) % count];
        int64_t expected = a[i] + b[i] * 1000 + int64_t(c[i]) * 1000000 + int64_t(d[i]) * 100000000000 + int8_t(a[i] + 1) +
                           uint16_t(d[i] * 3) + (int64_t(both) << 20);
        report.equal(i, expected, got[i], a[i], b[i], c[i], d[i]);
    }
}

// The usual transposition with padding.
template <class T> __global__ void transpose(T *out, const T *in, int width, int height) {
    __shared__ T tile[16][17];
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    if (x < width && y < height)
        tile[threadIdx.y][threadIdx.x] = in[y * width + x];
    __syncthreads();
    x = blockIdx.y * 16 + threadIdx.x, y = blockIdx.x * 16 + threadIdx.y;
    if (x < height && y < width)
        out[y * height + x] = tile[threadIdx.x][threadIdx.y];
}

template <class T> void test_transpose() {
    Report report("transposition");
    int width = 53, height = 37;
    std::vector<T> in(width * height);
    for (auto &value : in)
        value = T(next_random());
    T *out = upload(in);
    transpose<<<dim3((width + 15) / 16, (height + 15) / 16), dim3(16, 16)>>>(out, upload(in), width, height);
    auto got = download(out, in.size());
    for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x)
            report.equal(y * width + x, in[y * width + x], got[x * height + y]);
}

// A tree reduction, and a bitonic sort with a barrier per step. The size of the LDS is set at launch.
__global__ void sum_and_sort(uint32_t *sums, uint32_t *values, int n) {
    extern __shared__ uint32_t shared[];
    int i = threadIdx.x;
    values += blockIdx.x * n;
    for (int k = i; k < n; k += blockDim.x)
        shared[k] = values[k];
    __syncthreads();
    for (int size = 2; size <= n; size *= 2)
        for (int step = size / 2; step > 0; step /= 2) {
            for (int k = i; k < n; k += blockDim.x) {
                int other = k ^ step;
                bool up = (k & size) == 0;
                if (other > k && (shared[k] > shared[other]) == up) {
                    uint32_t value = shared[k];
                    shared[k] = shared[other];
                    shared[other] = value;
                }
            }
            __syncthreads();
        }
    for (int k = i; k < n; k += blockDim.x)
        values[k] = shared[k];
    __syncthreads();
    for (int half = n / 2; half > 0; half /= 2) {
        for (int k = i; k < half; k += blockDim.x)
            shared[k] += shared[k + half];
        __syncthreads();
    }
    if (i == 0)
        sums[blockIdx.x] = shared[0];
}

void test_sum_and_sort() {
    Report report("sums and sorting");
    const int groups = 3;
    for (int n : {64, 512, 2048})
        for (int block : {64, 160, 256}) {
            std::vector<uint32_t> values(groups * n);
            for (auto &value : values)
                value = uint32_t(next_random());
            uint32_t *device = upload(values), *sums = upload(std::vector<uint32_t>(groups));
            sum_and_sort<<<groups, block, n * 4>>>(sums, device, n);
            HIP(hipGetLastError());
            auto got = download(device, values.size()), got_sums = download(sums, groups);
            for (int g = 0; g < groups; ++g) {
                uint32_t sum = 0;
                for (int k = 0; k < n; ++k)
                    sum += values[g * n + k];
                std::sort(values.begin() + g * n, values.begin() + (g + 1) * n);
                report.equal(g, sum, got_sums[g]);
            }
            for (size_t k = 0; k < values.size(); ++k)
                report.equal(k, values[k], got[k]);
        }
}

// Two LDS elements in one instruction: close together, and 64 elements apart.
template <class T> __global__ void pairs(T *out, const T *in) {
    __shared__ T shared[1024];
    int i = threadIdx.x;
    shared[i] = in[i];
    shared[i + 128] = in[i + 128];
    shared[2 * i + 256] = in[i + 256];
    shared[2 * i + 257] = in[i + 384];
    __syncthreads();
    int k = (i * 7) & 127;
    out[i] = shared[k] * 3 + shared[k + 9];
    out[i + 128] = shared[k + 64] * 5 + shared[k + 320];
    out[i + 256] = shared[k + 1] ^ shared[k + 2];
}

template <class T> void test_pairs() {
    Report report("pairs");
    std::vector<T> in(512), shared(512);
    for (auto &value : in)
        value = T(next_random());
    T *out = upload(in);
    pairs<<<1, 128>>>(out, upload(in));
    auto got = download(out, 384);
    for (int i = 0; i < 128; ++i) {
        shared[i] = in[i];
        shared[i + 128] = in[i + 128];
        shared[2 * i + 256] = in[i + 256];
        shared[2 * i + 257] = in[i + 384];
    }
    for (int i = 0; i < 128; ++i) {
        int k = (i * 7) & 127;
        T expected[] = {T(shared[k] * 3 + shared[k + 9]), T(shared[k + 64] * 5 + shared[k + 320]), T(shared[k + 1] ^ shared[k + 2])};
        for (int part = 0; part < 3; ++part)
            report.equal(i + 128 * part, expected[part], got[i + 128 * part]);
    }
}

struct Mixed {
    uint8_t a;
    uint64_t b;
    uint16_t c[3];
    float4 d;
    uint8_t e[5];
};

// Structures by value: in kernel arguments, on the stack, in LDS.
__global__ void structures(Mixed *out, Mixed argument, int n) {
    __shared__ Mixed shared[64];
    int i = threadIdx.x;
    Mixed local = argument;
    local.a += uint8_t(i);
    local.c[i % 3] = uint16_t(i * 3);
    local.e[i % 5] ^= uint8_t(i);
    local.d.z += float(i);
    shared[i] = local;
    __syncthreads();
    out[blockIdx.x * 64 + i] = shared[(i * 5 + n) % 64];
}

void test_structures() {
    Report report("structures");
    Mixed argument = {7, 0x123456789abcdef, {1, 2, 3}, {1, 2, 3, 4}, {9, 8, 7, 6, 5}};
    Mixed *out = upload(std::vector<Mixed>(128));
    structures<<<2, 64>>>(out, argument, 3);
    auto got = download(out, 128);
    for (int k = 0; k < 128; ++k) {
        int i = (k % 64 * 5 + 3) % 64;
        Mixed m = argument;
        m.a += uint8_t(i);
        m.c[i % 3] = uint16_t(i * 3);
        m.e[i % 5] ^= uint8_t(i);
        m.d.z += float(i);
        const Mixed &g = got[k];
        if (m.a != g.a || m.b != g.b || std::memcmp(m.c, g.c, 6) || m.d.x != g.d.x || m.d.y != g.d.y || m.d.z != g.d.z ||
            m.d.w != g.d.w || std::memcmp(m.e, g.e, 5))
            report.differ(k, m.a, g.a);
    }
}

int main(int argc, char **argv) {
    start(argc, argv);
    test_copies<1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 15, 16, 17, 24, 31, 40>();
    test_elements<uint8_t>("elements of 1 byte");
    test_elements<uint16_t>("elements of 2 bytes");
    test_elements<uint32_t>("elements of 4 bytes");
    test_elements<uint64_t>("elements of 8 bytes");
    test_elements<uint3>("elements of 12 bytes");
    test_elements<uint4>("elements of 16 bytes");
    test_elements<uchar4>("elements of 4 single bytes");
    test_elements<ushort3>("elements of 6 bytes");
    test_elements<Words>("elements of 52 bytes");
    test_narrow();
    test_transpose<uint32_t>();
    test_transpose<uint8_t>();
    test_transpose<uint64_t>();
    test_sum_and_sort();
    test_pairs<uint32_t>();
    test_pairs<uint64_t>();
    test_structures();
    return finish();
}
