// Memory of all address spaces and widths: global, constant, LDS, private (with flat and scratch instructions); atomics;
// copies and fills; calls and indirect calls with stack frames in private memory.
#include "check.h"

struct Fields {
    int8_t a;
    int16_t b;
    uint8_t c;
    uint16_t d;
    int32_t e;
    int64_t f;
    float g;
    double h;
};

__host__ __device__ void mix(Fields &x) {
    x.a += x.b;
    x.b -= x.a;
    x.c += (uint8_t)x.d;
    x.d ^= x.c;
    x.e += x.a * 3u;
    x.f += x.e;
    x.g = x.e * 0.5f;
    x.h = x.f * 0.25;
}

__global__ void widths(Fields *fields, uint4 *fours, uint3 *threes, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count)
        return;
    mix(fields[i]);
    uint4 v = fours[i];
    fours[i] = make_uint4(v.w, v.z, v.y, v.x + i);
    uint3 w = threes[i];
    threes[i] = make_uint3(w.z, w.x, w.y);
}

void test_widths() {
    const int count = 777;
    std::vector<Fields> fields(count);
    for (auto &x : fields)
        x = {(int8_t)random_bits(), (int16_t)random_bits(), (uint8_t)random_bits(), (uint16_t)random_bits(),
             (int32_t)random_bits(), (int64_t)random_bits() >> 8, 0, 0};
    auto words = random_integers<uint32_t>(7 * count);
    std::vector<uint4> fours(count);
    std::vector<uint3> threes(count);
    memcpy(fours.data(), words.data(), count * sizeof(uint4));
    memcpy(threes.data(), words.data() + 4 * count, count * sizeof(uint3));
    Device<Fields> device_fields(fields);
    Device<uint4> device_fours(fours);
    Device<uint3> device_threes(threes);
    widths<<<4, 200>>>(device_fields, device_fours, device_threes, count);
    auto got = device_fields.host();
    auto got_fours = device_fours.host();
    auto got_threes = device_threes.host();
    for (int i = 0; i < count; i++) {
        mix(fields[i]);
        EXPECT_EQ(got[i].a, fields[i].a, i);
        EXPECT_EQ(got[i].b, fields[i].b, i);
        EXPECT_EQ(got[i].c, fields[i].c, i);
        EXPECT_EQ(got[i].d, fields[i].d, i);
        EXPECT_EQ(got[i].e, fields[i].e, i);
        EXPECT_EQ(got[i].f, fields[i].f, i);
        EXPECT_EQ(got[i].g, fields[i].g, i);
        EXPECT_EQ(got[i].h, fields[i].h, i);
        EXPECT_EQ(got_fours[i].x, fours[i].w, i);
        EXPECT_EQ(got_fours[i].w, fours[i].x + i, i);
        EXPECT_EQ(got_threes[i].x, threes[i].z, i);
        EXPECT_EQ(got_threes[i].z, threes[i].y, i);
    }
}

__global__ void atomics(int *a, unsigned *u, unsigned long long *l, float *f, double *d) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(a, i);
    atomicMin(a + 1, -i);
    atomicMax(a + 2, i);
    atomicOr(a + 3, 1 << (i & 31));
    atomicAnd(a + 4, ~(1 << (i & 15)));
    atomicXor(a + 5, i);
    atomicSub(a + 6, i);
    atomicInc(u, 99);
    atomicDec(u + 1, 50);
    atomicExch(u + 2, 7u);
    atomicCAS(u + 3, 0u, 5u);
    unsigned ticket = atomicAdd(u + 4, 1u);
    u[16 + ticket] = 1;
    atomicAdd(l, (unsigned long long)i << 20);
    atomicMax(l + 1, (unsigned long long)i << 33);
    atomicCAS(l + 2, 0ull, 9ull);
    atomicMin(l + 3, (unsigned long long)i + 3);
    atomicAdd(f, 1.0f);
    unsafeAtomicAdd(f + 1, 0.5f);
    atomicAdd(d, 0.25);
}

void test_atomics() {
    const int threads = 1000;
    Device<int> a({0, 0, 0, 0, -1, 0, 0});
    Device<unsigned> u(16 + threads);
    Device<unsigned long long> l({0, 0, 0, 1000});
    Device<float> f(2);
    Device<double> d(1);
    atomics<<<5, 200>>>(a, u, l, f, d);
    auto ha = a.host();
    auto hu = u.host();
    auto hl = l.host();
    int parity = 0;
    for (int i = 0; i < threads; i++)
        parity ^= i;
    const int sum = threads * (threads - 1) / 2;
    const int wanted[] = {sum, 1 - threads, threads - 1, -1, (int)0xffff0000, parity, -sum};
    for (int i = 0; i < 7; i++)
        EXPECT_EQ(ha[i], wanted[i], i);
    EXPECT_EQ(hu[0], threads % 100, 0);
    EXPECT_EQ(hu[1], 51 - threads % 51, 1);
    EXPECT_EQ(hu[2], 7u, 2);
    EXPECT_EQ(hu[3], 5u, 3);
    for (int i = 0; i < threads; i++)
        EXPECT_EQ(hu[16 + i], 1u, i);
    EXPECT_EQ(hl[0], (unsigned long long)sum << 20, 0);
    EXPECT_EQ(hl[1], 999ull << 33, 1);
    EXPECT_EQ(hl[2], 9ull, 2);
    EXPECT_EQ(hl[3], 3ull, 3);
    EXPECT_EQ(f.host()[0], 1000.0f, 0);
    EXPECT_EQ(f.host()[1], 500.0f, 1);
    EXPECT_EQ(d.host()[0], 250.0, 0);
}

__global__ void lds(int *out, int factor) {
    __shared__ int ints[256];
    __shared__ unsigned long long longs[4];
    __shared__ float floats[2];
    __shared__ uint8_t bytes[300];
    __shared__ double doubles[256];
    extern __shared__ int dynamic[];
    int t = threadIdx.x;
    if (t < 4)
        longs[t] = 0;
    if (t < 2)
        floats[t] = 0;
    ints[t] = t * factor;
    doubles[t] = t * 1.5;
    bytes[t] = t;
    __syncthreads();
    atomicAdd(&longs[t & 3], (unsigned long long)t << 30);
    atomicAdd(&floats[t & 1], 1.0f);
    atomicMax(&ints[(t + 1) & 255], t * 7);
    __syncthreads();
    dynamic[t] = ints[255 - t] + (int)(longs[t & 3] >> 30) + (int)floats[t & 1] + bytes[t * 3 & 255] +
                 (int)doubles[(t + 17) & 255];
    __syncthreads();
    out[blockIdx.x * 256 + t] = dynamic[t ^ 1];
}

void test_lds() {
    Device<int> out(3 * 256);
    lds<<<3, 256, 1024>>>(out, 3);
    int ints[256], result[256];
    unsigned long long longs[4] = {};
    for (int t = 0; t < 256; t++)
        ints[t] = t * 3;
    for (int t = 0; t < 256; t++) {
        int &element = ints[(t + 1) & 255];
        element = std::max(element, t * 7);
        longs[t & 3] += (unsigned long long)t << 30;
    }
    for (int t = 0; t < 256; t++)
        result[t] = ints[255 - t] + (int)(longs[t & 3] >> 30) + 128 + (t * 3 & 255) + (int)(((t + 17) & 255) * 1.5);
    auto got = out.host();
    for (int i = 0; i < 3 * 256; i++)
        EXPECT_EQ(got[i], result[i % 256 ^ 1], i);
}

__host__ __device__ __attribute__((noinline)) int fibonacci(int n) {
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__host__ __device__ int on_the_stack(int t, int key) {
    int array[32], sum = 0;
    for (int i = 0; i < 32; i++)
        array[(i * 7 + t) & 31] = i * t;
    for (int i = 0; i < 32; i++)
        sum = sum * 3u + array[(i + key) & 31];
    return sum + fibonacci(t % 11);
}

__global__ void stack(int *out) {
    int t = threadIdx.x + blockIdx.x * blockDim.x;
    out[t] = on_the_stack(t, out[t]);
}

using Function = int (*)(int);
__device__ __attribute__((noinline)) int twice(int x) { return x * 2; }
__device__ __attribute__((noinline)) int hundred_more(int x) { return x + 100; }
__device__ __attribute__((noinline)) int from_array(int x) {
    int array[4] = {x, x + 1, x + 2, x + 3};
    return array[x & 3];
}
__device__ Function table[3] = {twice, hundred_more, from_array};

__global__ void indirect(int *out) {
    int t = threadIdx.x;
    out[t] = table[t % 3](t);
}

// A pointer that may be private or global: only flat instructions can access it.
__global__ void either(int *out, int which) {
    int array[4] = {1, 2, 3, 4};
    int *target = which > 2 ? &array[threadIdx.x & 3] : out;
    atomicAdd(target, 5);
    *target += 1;
    out[threadIdx.x + 8] = array[threadIdx.x & 3] + *target;
}

void test_private() {
    auto keys = random_integers<int>(300);
    Device<int> out(keys);
    stack<<<3, 100>>>(out);
    auto got = out.host();
    for (int t = 0; t < 300; t++)
        EXPECT_EQ(got[t], on_the_stack(t, keys[t]), t);
    Device<int> called(100);
    indirect<<<1, 100>>>(called);
    got = called.host();
    for (int t = 0; t < 100; t++)
        EXPECT_EQ(got[t], t % 3 == 0 ? t * 2 : t % 3 == 1 ? t + 100 : t + (t & 3), t);
    Device<int> mixed(128);
    either<<<1, 64>>>(mixed, 5);
    got = mixed.host();
    for (int t = 0; t < 64; t++)
        EXPECT_EQ(got[t + 8], 2 * ((t & 3) + 7), t);
}

__constant__ int constants[16];
__device__ int variable[4];

__global__ void symbols(int *out) {
    out[threadIdx.x] = constants[threadIdx.x & 15] + variable[threadIdx.x & 3];
    if (threadIdx.x == 0)
        variable[0] = 99;
}

void test_symbols() {
    auto values = random_integers<int>(20);
    HIP(hipMemcpyToSymbol(HIP_SYMBOL(constants), values.data(), 64));
    HIP(hipMemcpyToSymbol(HIP_SYMBOL(variable), &values[16], 16));
    Device<int> out(32);
    symbols<<<1, 32>>>(out);
    auto got = out.host();
    for (int t = 0; t < 32; t++)
        EXPECT_EQ(got[t], (int)((unsigned)values[t & 15] + values[16 + (t & 3)]), t);
    int back[4];
    HIP(hipMemcpyFromSymbol(back, HIP_SYMBOL(variable), 16));
    EXPECT_EQ(back[0], 99, 0);
}

// Copies and fills that HIP implements with its own kernels, with more bytes than one of HIP's staging buffers holds.
void test_copies() {
    const size_t size = (5 << 20) + 13;
    auto from = random_integers<uint8_t>(size);
    Device<uint8_t> a(from), b(size);
    HIP(hipMemcpy(b + 1, a + 3, size - 5, hipMemcpyDeviceToDevice));
    HIP(hipMemset(b + 5, 0xab, 1001));
    auto got = b.host();
    for (size_t i = 0; i < size; i++)
        EXPECT_EQ(got[i], i >= 5 && i < 1006 ? 0xab : i == 0 || i > size - 5 ? 0 : from[i + 2], i);
    HIP(hipMemsetD32((hipDeviceptr_t)(uint8_t *)b, 0x11223344, 1000));
    HIP(hipMemset2D(a, 100, 3, 50, 20));
    got = b.host();
    for (int i = 0; i < 4000; i++)
        EXPECT_EQ(got[i], 0x44 - 0x11 * (i & 3), i);
    got = a.host();
    for (int i = 0; i < 2000; i++)
        EXPECT_EQ(got[i], i % 100 < 50 ? 3 : from[i], i);
}

int main() {
    test_widths();
    test_atomics();
    test_lds();
    test_private();
    test_symbols();
    test_copies();
    return finish();
}
