// Instructions for which clang has a builtin but C++ has no operator. The host computes the result as the guide's chapter
// 16 specifies.
#include "check.h"

// The builtin on the device, and its result on the host.
#ifdef __HIP_DEVICE_COMPILE__
#define INSTRUCTION(arguments, builtin, ...) [] __host__ __device__ arguments { return builtin; }
#else
#define INSTRUCTION(arguments, builtin, ...) [] __host__ __device__ arguments { return decltype(builtin)(__VA_ARGS__); }
#endif


__host__ __device__ uint32_t byte(uint32_t x, int i) { return x >> 8 * i & 255; }

__host__ __device__ uint32_t absolute_differences(uint32_t x, uint32_t y, bool masked = false) {
    uint32_t sum = 0;
    for (int i = 0; i < 4; ++i) {
        uint32_t a = byte(x, i), b = byte(y, i);
        if (!(masked && b == 0))
            sum += a > b ? a - b : b - a;
    }
    return sum;
}

__host__ __device__ uint32_t permuted(uint32_t x, uint32_t y, uint32_t select) {
    uint64_t both = uint64_t(x) << 32 | y;
    uint32_t result = 0;
    for (int i = 0; i < 4; ++i) {
        uint32_t s = byte(select, i), value;
        if (s < 8)
            value = both >> 8 * s & 255;
        else if (s < 12)
            value = both >> (16 * (s - 8) + 15) & 1 ? 255 : 0;
        else
            value = s == 12 ? 0 : 255;
        result |= value << 8 * i;
    }
    return result;
}

template <bool is_signed> __host__ __device__ uint32_t dot(uint32_t x, uint32_t y, uint32_t sum, int width) {
    for (int i = 0; i < 32; i += width) {
        if (is_signed)
            sum += uint32_t((int32_t(x << (32 - width - i)) >> (32 - width)) * (int32_t(y << (32 - width - i)) >> (32 - width)));
        else
            sum += (x >> i & ((1u << width) - 1)) * (y >> i & ((1u << width) - 1));
    }
    return sum;
}

__host__ __device__ uint32_t lerp(uint32_t x, uint32_t y, uint32_t round) {
    uint32_t result = 0;
    for (int i = 0; i < 4; ++i)
        result |= (byte(x, i) + byte(y, i) + (byte(round, i) & 1)) / 2 << 8 * i;
    return result;
}

// The median. The arguments are not NaN.
template <class T> __host__ __device__ T middle(T x, T y, T z) {
    return x < y ? (z < x ? x : z < y ? z : y) : (z < y ? y : z < x ? z : x);
}

template <class T> std::vector<T> numbers(int part) {
    auto values = inputs<T>(part, 3);
    for (auto &value : values)
        // Either of two zeros may be the smaller one.
        if (is_nan(value) || value == T(0))
            value = T(1.5);
    return values;
}

template <class T> void extremes() {
    auto a = numbers<T>(0), b = numbers<T>(1), c = numbers<T>(2);
    exact("minimum of three", BOTH((T x, T y, T z), T(__builtin_elementwise_minnum(__builtin_elementwise_minnum(x, y), z))), a, b, c);
    exact("maximum of three", BOTH((T x, T y, T z), T(__builtin_elementwise_maxnum(__builtin_elementwise_maxnum(x, y), z))), a, b, c);
    exact("within limits", BOTH((T x, T y, T z), T(__builtin_elementwise_minnum(__builtin_elementwise_maxnum(x, y), z))), a, b, c);
    exact("within limits", BOTH((T x, T y, T z), T(__builtin_elementwise_maxnum(__builtin_elementwise_minnum(x, y), z))), a, b, c);
}

int main(int argc, char **argv) {
    start(argc, argv);
    auto a = inputs<uint32_t>(0, 3), b = inputs<uint32_t>(1, 3), c = inputs<uint32_t>(2, 3);
    using U = uint32_t;
    exact("v_sad_u8", INSTRUCTION((U x, U y, U z), __builtin_amdgcn_sad_u8(x, y, z), absolute_differences(x, y) + z), a, b, c);
    exact("v_sad_hi_u8", INSTRUCTION((U x, U y, U z), __builtin_amdgcn_sad_hi_u8(x, y, z), (absolute_differences(x, y) << 16) + z), a, b, c);
    exact("v_msad_u8", INSTRUCTION((U x, U y, U z), __builtin_amdgcn_msad_u8(x, y, z), absolute_differences(x, y, true) + z), a, b, c);
    exact("v_sad_u16",
          INSTRUCTION((U x, U y, U z), __builtin_amdgcn_sad_u16(x, y, z),
                      U(std::abs(int(x & 0xffff) - int(y & 0xffff)) + std::abs(int(x >> 16) - int(y >> 16))) + z), a, b, c);
    exact("v_lerp_u8", INSTRUCTION((U x, U y, U z), __builtin_amdgcn_lerp(x, y, z), lerp(x, y, z)), a, b, c);
    exact("v_perm_b32", INSTRUCTION((U x, U y, U z), __builtin_amdgcn_perm(x, y, z & 0x0f0f0f0f), permuted(x, y, z & 0x0f0f0f0f)), a, b, c);
    exact("v_alignbit_b32", INSTRUCTION((U x, U y, U z), __builtin_amdgcn_alignbit(x, y, z), U((uint64_t(x) << 32 | y) >> (z & 31))), a, b, c);
    exact("v_alignbyte_b32", INSTRUCTION((U x, U y, U z), __builtin_amdgcn_alignbyte(x, y, z), U((uint64_t(x) << 32 | y) >> 8 * (z & 3))), a, b, c);
    exact("v_bfe_u32",
          INSTRUCTION((U x, U y, U z), __builtin_amdgcn_ubfe(x, y, z),
                      (z & 31) == 0 ? 0 : x >> (y & 31) & ((1u << (z & 31)) - 1)), a, b, c);
    exact("v_bfe_i32", INSTRUCTION((U x, U y), U(__builtin_amdgcn_sbfe(int(x), y & 15, 9)), U(int(x << (23 - (y & 15))) >> 23)), a, b);
    exact("v_dot4_u32_u8", INSTRUCTION((U x, U y, U z), __builtin_amdgcn_udot4(x, y, z, false), dot<false>(x, y, z, 8)), a, b, c);
    exact("v_dot8_u32_u4", INSTRUCTION((U x, U y, U z), __builtin_amdgcn_udot8(x, y, z, false), dot<false>(x, y, z, 4)), a, b, c);
#ifdef GFX9
    exact("v_dot4_i32_i8", INSTRUCTION((U x, U y, U z), U(__builtin_amdgcn_sdot4(int(x), int(y), int(z), false)), dot<true>(x, y, z, 8)), a, b, c);
    exact("v_dot8_i32_i4", INSTRUCTION((U x, U y, U z), U(__builtin_amdgcn_sdot8(int(x), int(y), int(z), false)), dot<true>(x, y, z, 4)), a, b, c);
    using Shorts = short __attribute__((ext_vector_type(2)));
    using Words = unsigned short __attribute__((ext_vector_type(2)));
    exact("v_dot2_i32_i16",
          INSTRUCTION((U x, U y, U z), U(__builtin_amdgcn_sdot2(__builtin_bit_cast(Shorts, x), __builtin_bit_cast(Shorts, y), int(z), false)),
                      dot<true>(x, y, z, 16)), a, b, c);
    exact("v_dot2_u32_u16",
          INSTRUCTION((U x, U y, U z), __builtin_amdgcn_udot2(__builtin_bit_cast(Words, x), __builtin_bit_cast(Words, y), z, false),
                      dot<false>(x, y, z, 16)), a, b, c);
#else
    exact("v_dot4_i32_iu8", INSTRUCTION((U x, U y, U z), U(__builtin_amdgcn_sudot4(true, int(x), true, int(y), int(z), false)), dot<true>(x, y, z, 8)), a, b, c);
    exact("v_dot8_i32_iu4", INSTRUCTION((U x, U y, U z), U(__builtin_amdgcn_sudot8(true, int(x), true, int(y), int(z), false)), dot<true>(x, y, z, 4)), a, b, c);
#endif
    exact("v_cvt_pk_u16_u32", INSTRUCTION((U x, U y), U(__builtin_bit_cast(U, __builtin_amdgcn_cvt_pk_u16(x, y))), std::min(x, 0xffffu) | std::min(y, 0xffffu) << 16), a, b);
    exact("v_cvt_pk_i16_i32",
          INSTRUCTION((U x, U y), U(__builtin_bit_cast(U, __builtin_amdgcn_cvt_pk_i16(int(x), int(y)))),
                      U(uint16_t(std::min(std::max(int(x), -32768), 32767))) | U(uint16_t(std::min(std::max(int(y), -32768), 32767))) << 16), a, b);
    exact("v_cvt_f32_ubyte", BOTH((U x), float(x & 255) + float(x >> 8 & 255) * 256 + float(x >> 16 & 255) * 3 + float(x >> 24) / 4), a);

    auto f = numbers<float>(0), g = numbers<float>(1), h = numbers<float>(2);
    exact("v_med3_f32", INSTRUCTION((float x, float y, float z), __builtin_amdgcn_fmed3f(x, y, z), middle(x, y, z)), f, g, h);
    exact("v_frexp_exp_i32_f32",
          INSTRUCTION((float x), __builtin_amdgcn_frexp_expf(x), std::isinf(x) ? 0 : std::ilogb(x) + 1), f);
    exact("v_frexp_exp_i32_f64",
          INSTRUCTION((double x), __builtin_amdgcn_frexp_exp(x), std::isinf(x) ? 0 : std::ilogb(x) + 1), numbers<double>(0));
    exact("v_fract_f32",
          INSTRUCTION((float x), __builtin_amdgcn_fractf(x),
                      std::isinf(x) ? NAN : std::fmin(x - std::floor(x), 0x1.fffffep-1f)), f);
    exact("v_fract_f64",
          INSTRUCTION((double x), __builtin_amdgcn_fract(x),
                      std::isinf(x) ? NAN : std::fmin(x - std::floor(x), 0x1.fffffffffffffp-1)), numbers<double>(0));
    // One bit per class: signaling and quiet NaN, then -infinity, -normal, -denormal, -0, +0, +denormal, +normal, +infinity.
    exact("v_cmp_class_f32",
          INSTRUCTION((float x, U mask), U(__builtin_amdgcn_classf(x, mask & 1020)),
                      U((mask >> (std::isinf(x) ? (x < 0 ? 2 : 9) : x == 0 ? (std::signbit(x) ? 5 : 6)
                                                                 : std::isnormal(x) ? (x < 0 ? 3 : 8) : (x < 0 ? 4 : 7)) & 1))), f, a);
    extremes<float>();
    extremes<_Float16>();
    extremes<double>();
    return finish();
}
