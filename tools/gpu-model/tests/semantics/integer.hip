// Integer arithmetic of every width, and the conversions between integers.
#include "check.h"

template <class T> void arithmetic() {
    using U = std::make_unsigned_t<T>;
    auto a = inputs<T>(0, 2), b = inputs<T>(1, 2), c = inputs<T>(0, 3);
    exact("add", BOTH((T x, T y), T(U(x) + U(y))), a, b);
    exact("subtract", BOTH((T x, T y), T(U(x) - U(y))), a, b);
    exact("multiply", BOTH((T x, T y), T(uint64_t(x) * uint64_t(y))), a, b);
    exact("multiply-add", BOTH((T x, T y, T z), T(uint64_t(x) * uint64_t(y) + uint64_t(z))), a, b, c);
    exact("divide", BOTH((T x, T y), y == 0 || (std::is_signed_v<T> && y == T(-1)) ? T(77) : T(x / y)), a, b);
    exact("remainder", BOTH((T x, T y), y == 0 || (std::is_signed_v<T> && y == T(-1)) ? T(77) : T(x % y)), a, b);
    exact("divide by 7", BOTH((T x), T(x / 7)), a);
    exact("remainder of 10", BOTH((T x), T(x % 10)), a);
    exact("and", BOTH((T x, T y), T(x & y)), a, b);
    exact("or", BOTH((T x, T y), T(x | y)), a, b);
    exact("xor", BOTH((T x, T y), T(x ^ y)), a, b);
    exact("and not", BOTH((T x, T y), T(x & ~y)), a, b);
    exact("xnor", BOTH((T x, T y), T(~(x ^ y))), a, b);
    exact("select bits", BOTH((T x, T y, T z), T((x & y) | (~x & z))), a, b, c);
    exact("not", BOTH((T x), T(~x)), a);
    exact("negate", BOTH((T x), T(-U(x))), a);
    exact("shift left", BOTH((T x, T y), T(U(x) << (y & (8 * sizeof(T) - 1)))), a, b);
    exact("shift right", BOTH((T x, T y), T(x >> (y & (8 * sizeof(T) - 1)))), a, b);
    exact("shift left by 3", BOTH((T x), T(U(x) << 3)), a);
    exact("shift and add", BOTH((T x, T y), T((U(x) << 2) + U(y))), a, b);
    exact("minimum", BOTH((T x, T y), x < y ? x : y), a, b);
    exact("maximum", BOTH((T x, T y), x > y ? x : y), a, b);
    exact("middle", BOTH((T x, T y, T z), x < y ? (z < x ? x : z < y ? z : y) : (z < y ? y : z < x ? z : x)), a, b, c);
    exact("compare", BOTH((T x, T y), int(x < y) | int(x <= y) << 1 | int(x > y) << 2 | int(x >= y) << 3 |
                                          int(x == y) << 4 | int(x != y) << 5), a, b);
    exact("add with saturation", BOTH((T x, T y), T(__builtin_elementwise_add_sat(x, y))), a, b);
    exact("subtract with saturation", BOTH((T x, T y), T(__builtin_elementwise_sub_sat(x, y))), a, b);
    exact("overflow of a sum", BOTH((T x, T y), [&] { T r; return int(__builtin_add_overflow(x, y, &r)); }()), a, b);
    exact("overflow of a difference", BOTH((T x, T y), [&] { T r; return int(__builtin_sub_overflow(x, y, &r)); }()), a, b);
    // clang 23 at -O0 multiplies with what happens to be in the high halves of the registers that hold 8 or 16 bits
    // (v_and_b16 v4.l, v3.h, v4.l; v_mad_u64_u32 v[5:6], s4, v3, v4, 0).
    if (optimized || sizeof(T) > 2)
        exact("overflow of a product", BOTH((T x, T y), [&] { T r; return int(__builtin_mul_overflow(x, y, &r)); }()), a, b);
    exact("bits set", BOTH((T x), __builtin_popcountg(U(x))), a);
    exact("zeros in front", BOTH((T x), __builtin_clzg(U(x), 99)), a);
    exact("zeros behind", BOTH((T x), __builtin_ctzg(U(x), 99)), a);
    exact("reverse bits", BOTH((T x), T(__builtin_elementwise_bitreverse(x))), a);
    exact("a field", BOTH((T x), T(U(x) >> 3 & 15)), a);
    exact("sign of a field", BOTH((T x), T(T(U(x) << 3) >> 4)), a);
    if constexpr (std::is_signed_v<T>)
        exact("absolute", BOTH((T x), T(x < 0 ? -U(x) : U(x))), a);
}

// The bits of the wide product that `multiply` drops.
template <class T, class Wide> void high_product() {
    auto a = inputs<T>(0, 2), b = inputs<T>(1, 2);
    exact("high product", BOTH((T x, T y), T(Wide(x) * Wide(y) >> 8 * sizeof(T))), a, b);
    exact("wide product", BOTH((T x, T y), uint64_t(Wide(x) * Wide(y) >> 3)), a, b);
}

template <class T, class... To> void conversions() {
    auto a = inputs<T>();
    (exact("convert", BOTH((T x), To(x)), a), ...);
}

template <class... T> void each() {
    (arithmetic<T>(), ...);
    (conversions<T, T...>(), ...);
}

int main(int argc, char **argv) {
    start(argc, argv);
    each<int8_t, uint8_t, int16_t, uint16_t, int32_t, uint32_t, int64_t, uint64_t>();
    high_product<int32_t, int64_t>();
    high_product<uint32_t, uint64_t>();
    high_product<int64_t, __int128>();
    high_product<uint64_t, unsigned __int128>();
    auto a = inputs<uint32_t>(0, 2), b = inputs<uint32_t>(1, 2);
    auto c = inputs<uint64_t>(0, 2), d = inputs<uint64_t>(1, 2);
    exact("swap bytes", BOTH((uint32_t x), __builtin_bswap32(x)), a);
    // clang 23 at -O0 copies half of the word that it swaps (v_mov_b16 v3.l, v1.l; v_perm_b32 v3, 0, v3, s4).
    if (optimized)
        exact("swap bytes", BOTH((uint64_t x), __builtin_bswap64(x)), c);
    exact("rotate", BOTH((uint32_t x, uint32_t y), __builtin_rotateleft32(x, y)), a, b);
    exact("rotate", BOTH((uint64_t x, uint64_t y), __builtin_rotateright64(x, y)), c, d);
    exact("align", BOTH((uint32_t x, uint32_t y), uint32_t((uint64_t(x) << 32 | y) >> (y & 31))), a, b);
    exact("24 bits", BOTH((uint32_t x, uint32_t y), (x & 0xffffff) * (y & 0xffffff)), a, b);
    exact("24 bits, signed", BOTH((uint32_t x, uint32_t y), (int(x << 8) >> 8) * int64_t(int(y << 8) >> 8)), a, b);
    exact("128 bits", BOTH((uint64_t x, uint64_t y),
                           uint64_t((((unsigned __int128)(x) << 64 | y) + ((unsigned __int128)(y) << 64 | x)) >> 64)), c, d);
    exact("divide 128 bits", BOTH((uint64_t x, uint64_t y), y >> 32 == 0 ? 0 : uint64_t(((unsigned __int128)(x) << 29 | 5) / y)), c, d);
    return finish();
}
