// Floating-point arithmetic of all widths. IEEE 754 defines the results, so they must be equal in all bits.
#include "check.h"

template <class T> void arithmetic() {
    auto a = inputs<T>(0, 2), b = inputs<T>(1, 2);
    exact("add", BOTH((T x, T y), T(x + y)), a, b);
    exact("subtract", BOTH((T x, T y), T(x - y)), a, b);
    exact("multiply", BOTH((T x, T y), T(x * y)), a, b);
    exact("divide", BOTH((T x, T y), T(x / y)), a, b);
    exact("negate", BOTH((T x), T(-x)), a);
    exact("subtract an absolute", BOTH((T x, T y), T(-x - (y < T(0) ? T(-y) : y))), a, b);
    exact("reciprocal", BOTH((T x), T(T(1) / x)), a);
    exact("constants", BOTH((T x, T y), T(T(x * T(0.5)) + T(y * T(-4)))), a, b);
    exact("compare", BOTH((T x, T y), int(x < y) | int(x <= y) << 1 | int(x > y) << 2 | int(x >= y) << 3 |
                                          int(x == y) << 4 | int(x != y) << 5 | int(!(x < y)) << 6 |
                                          int(!(x >= y)) << 7), a, b);
    exact("select", BOTH((T x, T y), x < y ? T(-x) : y), a, b);
}

template <class T> void functions() {
    auto a = inputs<T>(0, 2), b = inputs<T>(1, 2), c = inputs<T>(0, 3), d = inputs<T>(1, 3), e = inputs<T>(2, 3);
    exact("fused multiply-add", BOTH((T x, T y, T z), T(__builtin_elementwise_fma(x, y, z))), c, d, e);
    exact("fused, signs", BOTH((T x, T y, T z), T(__builtin_elementwise_fma(T(-x), y, T(-z)))), c, d, e);
    exact("fused, a constant", BOTH((T x, T y), T(__builtin_elementwise_fma(x, y, T(1.375)))), a, b);
    exact("fused, a factor", BOTH((T x, T y), T(__builtin_elementwise_fma(x, T(1.375), y))), a, b);
    exact("floor", BOTH((T x), T(__builtin_elementwise_floor(x))), a);
    exact("ceil", BOTH((T x), T(__builtin_elementwise_ceil(x))), a);
    exact("trunc", BOTH((T x), T(__builtin_elementwise_trunc(x))), a);
    exact("rint", BOTH((T x), T(__builtin_elementwise_rint(x))), a);
    exact("round", BOTH((T x), T(__builtin_elementwise_round(x))), a);
    exact("roundeven", BOTH((T x), T(__builtin_elementwise_roundeven(x))), a);
    exact("absolute", BOTH((T x), T(__builtin_elementwise_abs(x))), a);
    exact("copysign", BOTH((T x, T y), T(__builtin_elementwise_copysign(x, y))), a, b);
    exact("square root", BOTH((T x), T(__builtin_elementwise_sqrt(x))), a);
    // IEEE 754 does not define which of two zeros is the smaller one.
    exact("minimum", BOTH((T x, T y), x == y ? T(0) : T(__builtin_elementwise_minnum(x, y))), a, b);
    exact("maximum", BOTH((T x, T y), x == y ? T(0) : T(__builtin_elementwise_maxnum(x, y))), a, b);
    exact("scale", BOTH((T x, int n), T(__builtin_elementwise_ldexp(x, n % 80))), a, inputs<int>());
    exact("classes", BOTH((T x), __builtin_isnan(x) | __builtin_isinf(x) << 1 | __builtin_isnormal(x) << 2 |
                                     (__builtin_signbit(x) != 0) << 3 | __builtin_isfinite(x) << 4), a);
}

// Floats to integers, only if the value fits: otherwise C++ does not define the result.
template <class T, class To> void to_integer() {
    auto a = inputs<T>();
    constexpr double limit = sizeof(To) == 8 ? 9.2e18 : double(std::numeric_limits<To>::max());
    constexpr double low = std::is_signed_v<To> ? -limit : 0;
    exact("to an integer", BOTH((T x), float(x) >= float(low) && double(float(x)) < limit && double(x) < limit && double(x) >= low ? To(x) : To(99)), a);
    exact("from an integer", BOTH((To x), T(x)), inputs<To>());
}

template <class T> void to_integers() {
    to_integer<T, int8_t>();
    to_integer<T, uint8_t>();
    to_integer<T, int16_t>();
    to_integer<T, uint16_t>();
    to_integer<T, int32_t>();
    to_integer<T, uint32_t>();
    to_integer<T, int64_t>();
    to_integer<T, uint64_t>();
}

template <class T, class... To> void to_floats() {
    auto a = inputs<T>();
    (exact("to a float", BOTH((T x), To(x)), a), ...);
}

typedef _Float16 half2 __attribute__((ext_vector_type(2)));
typedef int16_t short2v __attribute__((ext_vector_type(2)));
typedef uint16_t ushort2v __attribute__((ext_vector_type(2)));

template <class V> __host__ __device__ uint32_t pack(V value) { return __builtin_bit_cast(uint32_t, value); }
template <class V> __host__ __device__ V unpack(uint32_t bits) { return __builtin_bit_cast(V, bits); }

// The payload of a NaN in packed halves is not defined.
__host__ __device__ inline uint32_t canonical(half2 v) {
    uint32_t bits = pack(v);
    if (v.x != v.x)
        bits = (bits & 0xffff0000) | 0x7e00;
    if (v.y != v.y)
        bits = (bits & 0xffff) | 0x7e000000;
    return bits;
}

void packed() {
    auto a = inputs<uint32_t>(0, 2), b = inputs<uint32_t>(1, 2);
    auto h = [](const std::vector<_Float16> &x, const std::vector<_Float16> &y) {
        std::vector<uint32_t> both(count);
        for (size_t i = 0; i < count; ++i)
            both[i] = uint32_t(to_bits(x[i]) | to_bits(y[i]) << 16);
        return both;
    };
    auto p = h(inputs<_Float16>(0, 2), inputs<_Float16>(0, 1)), q = h(inputs<_Float16>(1, 2), inputs<_Float16>(0, 1));
    exact("packed halves", BOTH((uint32_t x, uint32_t y), canonical(unpack<half2>(x) + unpack<half2>(y))), p, q);
    exact("packed halves", BOTH((uint32_t x, uint32_t y), canonical(unpack<half2>(x) * unpack<half2>(y))), p, q);
    exact("packed halves", BOTH((uint32_t x, uint32_t y), canonical(unpack<half2>(x).yx - unpack<half2>(y).xx)), p, q);
    exact("packed halves", BOTH((uint32_t x, uint32_t y),
                                canonical(__builtin_elementwise_fma(unpack<half2>(x), -unpack<half2>(y), unpack<half2>(x).yx))), p, q);
    exact("packed shorts", BOTH((uint32_t x, uint32_t y), pack(unpack<ushort2v>(x) + unpack<ushort2v>(y))), a, b);
    exact("packed shorts", BOTH((uint32_t x, uint32_t y), pack(unpack<ushort2v>(x) * unpack<ushort2v>(y).yx)), a, b);
    exact("packed shorts", BOTH((uint32_t x, uint32_t y), pack(unpack<short2v>(x) >> (unpack<short2v>(y) & 15))), a, b);
    exact("packed shorts", BOTH((uint32_t x, uint32_t y), pack(__builtin_elementwise_max(unpack<short2v>(x), unpack<short2v>(y)))), a, b);
    exact("packed shorts", BOTH((uint32_t x, uint32_t y), pack(__builtin_elementwise_min(unpack<ushort2v>(x), unpack<ushort2v>(y)))), a, b);
    exact("packed shorts", BOTH((uint32_t x, uint32_t y), pack(__builtin_elementwise_add_sat(unpack<short2v>(x), unpack<short2v>(y)))), a, b);
    exact("packed shorts", BOTH((uint32_t x, uint32_t y), pack(__builtin_elementwise_sub_sat(unpack<ushort2v>(x), unpack<ushort2v>(y)))), a, b);
}

void mixed() {
    auto a = inputs<_Float16>(0, 3), b = inputs<_Float16>(1, 3);
    auto c = inputs<float>(2, 3);
    exact("mixed multiply-add", BOTH((_Float16 x, _Float16 y, float z), __builtin_fmaf(float(x), float(y), z)), a, b, c);
    exact("mixed multiply-add", BOTH((_Float16 x, _Float16 y, float z), _Float16(__builtin_fmaf(float(x), -float(y), z))), a, b, c);
    exact("float to half product", BOTH((float z, _Float16 x), _Float16(z) * x), c, a);
}

int main(int argc, char **argv) {
    start(argc, argv);
    arithmetic<float>();
    arithmetic<double>();
    arithmetic<_Float16>();
    arithmetic<__bf16>();
    functions<float>();
    functions<double>();
    functions<_Float16>();
    to_integers<float>();
    to_integers<double>();
    to_integers<_Float16>();
    to_floats<float, double, _Float16, __bf16>();
    to_floats<double, float, _Float16>();
    to_floats<_Float16, float, double>();
    to_floats<__bf16, float, double>();
    packed();
    mixed();
    return finish();
}
