// Instructions of CDNA: matrices, packed f32, dot products, f64 atomics, and the registers that identify a compute unit.
// The host places the elements of the matrices in registers and lanes as AMD's matrix instruction calculator does.
#include "check.h"

using f32x2 = float __attribute__((ext_vector_type(2)));
using f32x4 = float __attribute__((ext_vector_type(4)));
using f32x16 = float __attribute__((ext_vector_type(16)));
using f32x32 = float __attribute__((ext_vector_type(32)));
using i32x4 = int __attribute__((ext_vector_type(4)));
using i32x16 = int __attribute__((ext_vector_type(16)));
using i32x32 = int __attribute__((ext_vector_type(32)));
using f64x4 = double __attribute__((ext_vector_type(4)));
using f16x4 = _Float16 __attribute__((ext_vector_type(4)));
using i16x2 = short __attribute__((ext_vector_type(2)));
using i16x4 = short __attribute__((ext_vector_type(4)));

// The bits of a bf16.
struct Bf16 {
    uint16_t bits;
    Bf16() = default;
    Bf16(int value) {
        float f = float(value);
        uint32_t word;
        std::memcpy(&word, &f, 4);
        bits = uint16_t(word >> 16);
    }
};

template <class F, class A, class D> __global__ void multiply(F f, D *d, const A *a, const A *b, const D *c) {
    int i = threadIdx.x;
    d[i] = f(a[i], b[i], c[i]);
}

// One instruction. E: the type of the elements of A and B. R: of C and D.
template <class E, class R, class A, class D, class F> void product(const char *name, int n, int k, int blocks, F f) {
    if constexpr (on_host) {
        int each = n * k * blocks / 64, results = n * n * blocks / 64, height = sizeof(R) == 8 ? 1 : 4;
        static_assert(sizeof(A) % sizeof(E) == 0 && sizeof(D) % sizeof(R) == 0);
        Report report(name);
        if (each * sizeof(E) != sizeof(A) || results * sizeof(R) != sizeof(D)) {
            report.differ(0, 0, 1);
            return;
        }
        auto source = [&](int line, int kk, int block) {
            return (line + n * (block + blocks * (kk / each))) * each + kk % each;
        };
        int together = std::max(64 * height / (n * n), 1), rows = 64 / n;
        auto result = [&](int i, int j, int block) {
            int lane = j + n * (block % together + together * (i / height % rows));
            return lane * results + block * (n * n / 64) + i / (height * rows) * height + i % height;
        };
        std::vector<int> a(blocks * n * k), b(a), c(blocks * n * n);
        for (auto *values : {&a, &b, &c})
            for (int &value : *values)
                value = int(next_random() % 9) - 4;
        std::vector<A> fragments_a(64), fragments_b(64);
        std::vector<D> fragments_c(64);
        auto *in_a = reinterpret_cast<E *>(fragments_a.data()), *in_b = reinterpret_cast<E *>(fragments_b.data());
        auto *in_c = reinterpret_cast<R *>(fragments_c.data());
        for (int block = 0; block < blocks; ++block)
            for (int i = 0; i < n; ++i) {
                for (int kk = 0; kk < k; ++kk) {
                    in_a[source(i, kk, block)] = E(a[(block * n + i) * k + kk]);
                    in_b[source(i, kk, block)] = E(b[(block * n + i) * k + kk]);
                }
                for (int j = 0; j < n; ++j)
                    in_c[result(i, j, block)] = R(c[(block * n + i) * n + j]);
            }
        D *out = upload(std::vector<D>(64));
        multiply<<<1, 64>>>(f, out, upload(fragments_a), upload(fragments_b), upload(fragments_c));
        HIP(hipGetLastError());
        auto got = download(out, 64);
        auto *values = reinterpret_cast<R *>(got.data());
        for (int block = 0; block < blocks; ++block)
            for (int i = 0; i < n; ++i)
                for (int j = 0; j < n; ++j) {
                    int sum = c[(block * n + i) * n + j];
                    for (int kk = 0; kk < k; ++kk)
                        sum += a[(block * n + i) * k + kk] * b[(block * n + j) * k + kk];
                    report.equal((block * n + i) * n + j, R(sum), values[result(i, j, block)]);
                }
    } else {
        (void)&multiply<F, A, D>;
    }
}

#ifdef __HIP_DEVICE_COMPILE__
#define MFMA(A, D, builtin) [] __device__(A a, A b, D c) -> D { return builtin(a, b, c, 0, 0, 0); }
#else
#define MFMA(A, D, builtin) [] __device__(A a, A b, D c) -> D { return c; }
#endif

void matrices() {
    product<float, float, float, f32x32>("f32 32x32x1", 32, 1, 2, MFMA(float, f32x32, __builtin_amdgcn_mfma_f32_32x32x1f32));
    product<float, float, float, f32x16>("f32 16x16x1", 16, 1, 4, MFMA(float, f32x16, __builtin_amdgcn_mfma_f32_16x16x1f32));
    product<float, float, float, f32x4>("f32 4x4x1", 4, 1, 16, MFMA(float, f32x4, __builtin_amdgcn_mfma_f32_4x4x1f32));
    product<float, float, float, f32x16>("f32 32x32x2", 32, 2, 1, MFMA(float, f32x16, __builtin_amdgcn_mfma_f32_32x32x2f32));
    product<float, float, float, f32x4>("f32 16x16x4", 16, 4, 1, MFMA(float, f32x4, __builtin_amdgcn_mfma_f32_16x16x4f32));
    using H = _Float16;
    product<H, float, f16x4, f32x32>("f16 32x32x4", 32, 4, 2, MFMA(f16x4, f32x32, __builtin_amdgcn_mfma_f32_32x32x4f16));
    product<H, float, f16x4, f32x16>("f16 16x16x4", 16, 4, 4, MFMA(f16x4, f32x16, __builtin_amdgcn_mfma_f32_16x16x4f16));
    product<H, float, f16x4, f32x4>("f16 4x4x4", 4, 4, 16, MFMA(f16x4, f32x4, __builtin_amdgcn_mfma_f32_4x4x4f16));
    product<H, float, f16x4, f32x16>("f16 32x32x8", 32, 8, 1, MFMA(f16x4, f32x16, __builtin_amdgcn_mfma_f32_32x32x8f16));
    product<H, float, f16x4, f32x4>("f16 16x16x16", 16, 16, 1, MFMA(f16x4, f32x4, __builtin_amdgcn_mfma_f32_16x16x16f16));
    product<Bf16, float, i16x4, f32x32>("bf16 32x32x4", 32, 4, 2, MFMA(i16x4, f32x32, __builtin_amdgcn_mfma_f32_32x32x4bf16_1k));
    product<Bf16, float, i16x4, f32x16>("bf16 16x16x4", 16, 4, 4, MFMA(i16x4, f32x16, __builtin_amdgcn_mfma_f32_16x16x4bf16_1k));
    product<Bf16, float, i16x4, f32x4>("bf16 4x4x4", 4, 4, 16, MFMA(i16x4, f32x4, __builtin_amdgcn_mfma_f32_4x4x4bf16_1k));
    product<Bf16, float, i16x4, f32x16>("bf16 32x32x8", 32, 8, 1, MFMA(i16x4, f32x16, __builtin_amdgcn_mfma_f32_32x32x8bf16_1k));
    product<Bf16, float, i16x4, f32x4>("bf16 16x16x16", 16, 16, 1, MFMA(i16x4, f32x4, __builtin_amdgcn_mfma_f32_16x16x16bf16_1k));
    using B = int8_t;
    product<B, int, int, i32x32>("i8 32x32x4", 32, 4, 2, MFMA(int, i32x32, __builtin_amdgcn_mfma_i32_32x32x4i8));
    product<B, int, int, i32x16>("i8 16x16x4", 16, 4, 4, MFMA(int, i32x16, __builtin_amdgcn_mfma_i32_16x16x4i8));
    product<B, int, int, i32x4>("i8 4x4x4", 4, 4, 16, MFMA(int, i32x4, __builtin_amdgcn_mfma_i32_4x4x4i8));
    product<double, double, double, f64x4>("f64 16x16x4", 16, 4, 1, MFMA(double, f64x4, __builtin_amdgcn_mfma_f64_16x16x4f64));
    product<double, double, double, double>("f64 4x4x4", 4, 4, 4, MFMA(double, double, __builtin_amdgcn_mfma_f64_4x4x4f64));
#if GFX9 == 942
    product<B, int, long, i32x16>("i8 32x32x16", 32, 16, 1, MFMA(long, i32x16, __builtin_amdgcn_mfma_i32_32x32x16_i8));
    product<B, int, long, i32x4>("i8 16x16x32", 16, 32, 1, MFMA(long, i32x4, __builtin_amdgcn_mfma_i32_16x16x32_i8));
#else
    product<B, int, int, i32x16>("i8 32x32x8", 32, 8, 1, MFMA(int, i32x16, __builtin_amdgcn_mfma_i32_32x32x8i8));
    product<B, int, int, i32x4>("i8 16x16x16", 16, 16, 1, MFMA(int, i32x4, __builtin_amdgcn_mfma_i32_16x16x16i8));
    product<Bf16, float, i16x2, f32x32>("bf16 32x32x2", 32, 2, 2, MFMA(i16x2, f32x32, __builtin_amdgcn_mfma_f32_32x32x2bf16));
    product<Bf16, float, i16x2, f32x4>("bf16 16x16x8", 16, 8, 1, MFMA(i16x2, f32x4, __builtin_amdgcn_mfma_f32_16x16x8bf16));
#endif
}

// Both elements of a vector: clang generates v_pk_fma_f32 and similar instructions.
__global__ void packed(f32x2 *out, const f32x2 *x, const f32x2 *y) {
    int i = threadIdx.x;
    f32x2 a = x[i], b = y[i];
    out[4 * i] = a + b;
    out[4 * i + 1] = a * b;
    out[4 * i + 2] = __builtin_elementwise_fma(a, b.yx, -b);
    out[4 * i + 3] = a.yx * 2.0f;
}

void packed_floats() {
    Report report("packed f32");
    std::vector<f32x2> x(64), y(64);
    for (int i = 0; i < 64; ++i)
        x[i] = {any<float>(), any<float>()}, y[i] = {any<float>(), any<float>()};
    f32x2 *out = upload(std::vector<f32x2>(256));
    packed<<<1, 64>>>(out, upload(x), upload(y));
    auto got = download(out, 256);
    for (int i = 0; i < 64; ++i)
        for (int e = 0; e < 2; ++e) {
            float a = x[i][e], b = y[i][e];
            float expected[] = {a + b, a * b, std::fma(a, y[i][1 - e], -b), x[i][1 - e] * 2};
            for (int k = 0; k < 4; ++k)
                report.equal(4 * i + k, expected[k], float(got[4 * i + k][e]), a, b);
        }
}

__global__ void atomics(double *memory, double *out) {
    __shared__ double shared;
    if (threadIdx.x == 0)
        shared = 0;
    __syncthreads();
    unsafeAtomicAdd(memory, double(threadIdx.x));
    unsafeAtomicAdd(&shared, 0.5);
    unsafeAtomicMin(memory + 1, -double(threadIdx.x));
    unsafeAtomicMax(memory + 2, double(threadIdx.x));
    __syncthreads();
    if (threadIdx.x == 0)
        *out = shared;
}

void atomics_on_doubles() {
    Report report("atomics on doubles");
    double *memory = upload(std::vector<double>{1, 2, 3, 0});
    atomics<<<3, 256>>>(memory, memory + 3);
    auto got = download(memory, 4);
    double expected[] = {1 + 3 * 255 * 128, -255, 255, 128};
    for (int i = 0; i < 4; ++i)
        report.equal(i, expected[i], got[i]);
}

__global__ void units(unsigned *out) {
    // HW_ID, XCC_ID
    unsigned id = __builtin_amdgcn_s_getreg(4 | 31 << 11);
    unsigned xcc = 0;
#if GFX9 == 942
    xcc = __builtin_amdgcn_s_getreg(20 | 3 << 11);
#endif
    if (threadIdx.x == 0)
        out[blockIdx.x] = xcc << 16 | (id >> 13 & 7) << 8 | (id >> 8 & 15);
}

void compute_units() {
    Report report("compute units");
    constexpr unsigned BLOCKS = 640, XCCS = GFX9 == 942 ? 8 : 1, UNITS_PER_XCC = GFX9 == 942 ? 38 : 8, ENGINES = 4;
    // Numbers on the chip: not all compute units of an engine are in use.
    constexpr unsigned ON_CHIP = GFX9 == 942 ? 10 : 14;
    unsigned *out = upload(std::vector<unsigned>(BLOCKS));
    units<<<BLOCKS, 64>>>(out);
    auto got = download(out, BLOCKS);
    for (unsigned i = 0; i < BLOCKS; ++i) {
        unsigned unit = i / XCCS % UNITS_PER_XCC;
        unsigned engine = unit % ENGINES, in_use = (UNITS_PER_XCC - engine + ENGINES - 1) / ENGINES;
        unsigned expected = i % XCCS << 16 | engine << 8 | unit / ENGINES * ON_CHIP / in_use;
        report.equal(i, expected, got[i]);
    }
}

// An index that clang does not know: it uses relative register numbers or the private segment.
__global__ void indexed(int *out, const int *in) {
    int values[16];
    for (int i = 0; i < 16; ++i)
        values[i] = in[i] * int(threadIdx.x);
    int index = __builtin_amdgcn_readfirstlane(in[16]);
    values[index] += 7;
    out[threadIdx.x] = values[index] + values[(index + int(threadIdx.x)) & 15];
}

void indexes() {
    Report report("indexed registers");
    for (int index = 0; index < 16; ++index) {
        std::vector<int> in(17);
        for (int &value : in)
            value = int(next_random() % 1000);
        in[16] = index;
        int *out = upload(std::vector<int>(64));
        indexed<<<1, 64>>>(out, upload(in));
        auto got = download(out, 64);
        for (int i = 0; i < 64; ++i) {
            int other = (index + i) & 15;
            int expected = in[index] * i + 7 + in[other] * i + (other == index ? 7 : 0);
            report.equal(i, expected, got[i]);
        }
    }
}

int main(int argc, char **argv) {
    start(argc, argv);
    matrices();
    packed_floats();
    atomics_on_doubles();
    compute_units();
    indexes();
    return finish();
}
