// Runs the same functions on the host and on the device, with random arguments. The results for integers and floats of 16,
// 32 and 64 bits must be equal. The results of transcendental functions must be within the error bounds of OpenCL and HIP.
#include "check.h"
#include <cmath>

constexpr int COUNT = 3000;

template <class T> __host__ __device__ void float_operations(T x, T y, T *out) {
    out[0] = x + y;
    out[1] = x - y;
    out[2] = x * y;
    out[3] = x / y;
    out[4] = sqrt(x < 0 ? -x : x);
    out[5] = fma(x, y, x);
    out[6] = fmin(x, y);
    out[7] = fmax(x, y);
    out[8] = floor(x);
    out[9] = ceil(x);
    out[10] = trunc(x);
    out[11] = rint(x);
    out[12] = x < y ? x : y;
    out[13] = ldexp(x, 3);
    out[14] = copysign(x, y);
    int exponent;
    out[15] = frexp(x, &exponent) + exponent;
}

template <class T> __global__ void run_float_operations(const T *a, const T *b, T *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < COUNT)
        float_operations(a[i], b[i], out + 16 * i);
}

template <class T> std::vector<T> random_floats() {
    std::uniform_real_distribution<double> part(-1, 1), exponent(-6, 6);
    std::vector<T> out(COUNT);
    for (auto &value : out)
        value = part(random_bits) * pow(10, exponent(random_bits));
    const double special[] = {0, -0.0, 1, -1, INFINITY, -INFINITY, NAN, 1e-39, 0.5, 2.5, -2.5, 1e30};
    for (size_t i = 0; i < sizeof special / sizeof *special; i++)
        out[i * 7] = out[i * 7 + 1] = special[i];
    return out;
}

template <class T> bool same(T a, T b) { return !memcmp(&a, &b, sizeof a) || (std::isnan(a) && std::isnan(b)); }

template <class T> void test_float_operations() {
    auto a = random_floats<T>(), b = random_floats<T>();
    Device<T> device_a(a), device_b(b), out(16 * COUNT);
    run_float_operations<T><<<(COUNT + 127) / 128, 128>>>(device_a, device_b, out);
    auto got = out.host();
    for (int i = 0; i < COUNT; i++) {
        T wanted[16];
        float_operations(a[i], b[i], wanted);
        for (int k = 0; k < 16; k++)
            // The exponent that frexp returns for infinity is not defined.
            if (!same(got[16 * i + k], wanted[k]) && !(k == 15 && !std::isfinite(a[i])))
                EXPECT_EQ(got[16 * i + k], wanted[k], 100 * i + k);
    }
}

template <class T> __host__ __device__ void transcendental(T x, T *out) {
    out[0] = sin(x);
    out[1] = cos(x);
    out[2] = exp(x);
    out[3] = log(fabs(x));
    out[4] = pow(fabs(x), (T)1.7);
    out[5] = tanh(x);
    out[6] = atan2(x, (T)2);
    out[7] = cbrt(x);
}

template <class T> __global__ void run_transcendental(const T *a, T *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < COUNT)
        transcendental(a[i], out + 8 * i);
}

// The host computes in double. `tolerance` is relative, `smallest` is an absolute difference that is always allowed.
template <class T> void test_transcendental(double tolerance, double smallest) {
    auto a = random_floats<T>();
    Device<T> device_a(a), out(8 * COUNT);
    run_transcendental<T><<<(COUNT + 127) / 128, 128>>>(device_a, out);
    auto got = out.host();
    for (int i = 0; i < COUNT; i++) {
        double x = a[i];
        const double wanted[8] = {sin(x),     cos(x),  exp(x),      log(fabs(x)), pow(fabs(x), (T)1.7),
                                  tanh(x),    atan2(x, 2), cbrt(x)};
        for (int k = 0; k < 8; k++) {
            T value = got[8 * i + k];
            bool near = same(value, (T)wanted[k]) ||
                        std::fabs((double)value - wanted[k]) <= tolerance * std::fabs(wanted[k]) + smallest;
            if (!near)
                EXPECT_EQ(value, (T)wanted[k], 100 * i + k);
        }
    }
}

__host__ __device__ void half_operations(_Float16 x, _Float16 y, _Float16 *out) {
    out[0] = x + y;
    out[1] = x - y;
    out[2] = x * y;
    out[3] = x < y ? x : y;
    out[4] = (_Float16)(float)(int)x;
    out[5] = -x;
    out[6] = (_Float16)((float)x * 3.0f);
    out[7] = (_Float16)(short)x;
}

__global__ void run_half_operations(const _Float16 *a, const _Float16 *b, _Float16 *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < COUNT)
        half_operations(a[i], b[i], out + 8 * i);
}

void test_half_operations() {
    std::uniform_real_distribution<double> part(-100, 100);
    std::vector<_Float16> a(COUNT), b(COUNT);
    for (int i = 0; i < COUNT; i++) {
        a[i] = part(random_bits);
        b[i] = part(random_bits);
    }
    Device<_Float16> device_a(a), device_b(b), out(8 * COUNT);
    run_half_operations<<<(COUNT + 127) / 128, 128>>>(device_a, device_b, out);
    auto got = out.host();
    for (int i = 0; i < COUNT; i++) {
        _Float16 wanted[8];
        half_operations(a[i], b[i], wanted);
        for (int k = 0; k < 8; k++)
            EXPECT_EQ((float)got[8 * i + k], (float)wanted[k], 100 * i + k);
    }
}

__host__ __device__ void conversions(double x, int64_t n, double *out) {
    out[0] = (int)x;
    out[1] = (float)x;
    out[2] = (double)(int64_t)x;
    out[3] = (unsigned)fabs(x);
    out[4] = (double)n;
    out[5] = (float)n;
    out[6] = (int)n;
    out[7] = (float)(unsigned)n;
    out[8] = (double)(uint64_t)n;
    out[9] = (float)(uint64_t)n;
    out[10] = (short)(int)x;
    out[11] = (double)(_Float16)(float)x;
}

__global__ void run_conversions(const double *a, const int64_t *b, double *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < COUNT)
        conversions(a[i], b[i], out + 12 * i);
}

void test_conversions() {
    std::uniform_real_distribution<double> part(-1e9, 1e9);
    std::vector<double> a(COUNT);
    for (auto &x : a)
        x = part(random_bits) / (1 << random_bits() % 30);
    auto b = random_integers<int64_t>(COUNT);
    Device<double> device_a(a), out(12 * COUNT);
    Device<int64_t> device_b(b);
    run_conversions<<<(COUNT + 127) / 128, 128>>>(device_a, device_b, out);
    auto got = out.host();
    for (int i = 0; i < COUNT; i++) {
        double wanted[12];
        conversions(a[i], b[i], wanted);
        for (int k = 0; k < 12; k++)
            EXPECT_EQ(got[12 * i + k], wanted[k], 100 * i + k);
    }
}

__host__ __device__ void integer_operations(int64_t x, int64_t y, uint64_t *out) {
    uint64_t ux = x, uy = y;
    int32_t ix = x, iy = y;
    uint32_t wx = x, wy = y;
    int16_t hx = x, hy = y;
    out[0] = ux * uy;
    out[1] = y ? x / y : 0;
    out[2] = y ? x % y : 0;
    out[3] = uy ? ux / uy : 0;
    out[4] = uy ? ux % uy : 0;
    out[5] = ux << (y & 63);
    out[6] = x >> (y & 63);
    out[7] = ux >> (y & 63);
    out[8] = wx * wy;
    out[9] = iy && iy != -1 ? ix / iy : 0;
    out[10] = iy && iy != -1 ? ix % iy : 0;
    out[11] = wy ? wx / wy : 0;
    out[12] = wy ? wx % wy : 0;
    out[13] = ix >> (iy & 31);
    out[14] = __builtin_popcountll(ux);
    out[15] = ux ? __builtin_clzll(ux) : 64;
    out[16] = ux ? __builtin_ctzll(ux) : 64;
    out[17] = __builtin_bitreverse32(wx);
    out[18] = ((uint64_t)wx * wy) >> 32;
    out[19] = ((int64_t)ix * iy) >> 32;
    out[20] = (int16_t)(hx * hy);
    out[21] = (int16_t)(hx + hy);
    out[22] = (uint16_t)((uint16_t)hx >> (hy & 15));
    out[23] = ix < iy ? ix : iy;
    out[24] = wx > wy ? wx : wy;
    out[25] = x < y;
    out[26] = ux + uy;
    out[27] = ux - uy;
    out[28] = __builtin_bitreverse64(ux);
    out[29] = wx << 7 | wx >> 25;
    out[30] = hx < hy ? hx : hy;
    out[31] = (uint8_t)x * (uint8_t)y;
}

__global__ void run_integer_operations(const int64_t *a, const int64_t *b, uint64_t *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < COUNT)
        integer_operations(a[i], b[i], out + 32 * i);
}

void test_integer_operations() {
    auto a = random_integers<int64_t>(COUNT), b = random_integers<int64_t>(COUNT);
    for (int i = 0; i < COUNT; i += 3)
        b[i] = (int)b[i] % 1000;
    a[0] = b[1] = 0;
    Device<int64_t> device_a(a), device_b(b);
    Device<uint64_t> out(32 * COUNT);
    run_integer_operations<<<(COUNT + 127) / 128, 128>>>(device_a, device_b, out);
    auto got = out.host();
    for (int i = 0; i < COUNT; i++) {
        uint64_t wanted[32];
        integer_operations(a[i], b[i], wanted);
        for (int k = 0; k < 32; k++)
            EXPECT_EQ(got[32 * i + k], wanted[k], 100 * i + k);
    }
}

int main() {
    test_float_operations<float>();
    test_float_operations<double>();
    test_half_operations();
    test_transcendental<float>(4e-6, 1e-37);
    test_transcendental<double>(1e-14, 1e-300);
    test_conversions();
    test_integer_operations();
    return finish();
}
