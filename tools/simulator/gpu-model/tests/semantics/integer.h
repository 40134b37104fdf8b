// The operations that C++ has for an integer type.
#pragma once

#include "check.h"

template <class T> void arithmetic() {
    using U = std::make_unsigned_t<T>;
    auto a = inputs<T>(0, 2), b = inputs<T>(1, 2), c = inputs<T>(0, 3);
    exact("divide", BOTH((T x, T y), y == 0 || (std::is_signed_v<T> && y == T(-1)) ? T(77) : T(x / y)), a, b);
    exact("remainder", BOTH((T x, T y), y == 0 || (std::is_signed_v<T> && y == T(-1)) ? T(77) : T(x % y)), a, b);
    exact("divide by 7", BOTH((T x), T(x / 7)), a);
    exact("remainder of 10", BOTH((T x), T(x % 10)), a);
    exact("shift right", BOTH((T x, T y), T(x >> (y & (8 * sizeof(T) - 1)))), a, b);
    exact("minimum", BOTH((T x, T y), x < y ? x : y), a, b);
    exact("maximum", BOTH((T x, T y), x > y ? x : y), a, b);
    exact("middle", BOTH((T x, T y, T z), x < y ? (z < x ? x : z < y ? z : y) : (z < y ? y : z < x ? z : x)), a, b, c);
    exact("minimum of three", BOTH((T x, T y, T z), std::min(std::min(x, y), z)), a, b, c);
    exact("maximum of three", BOTH((T x, T y, T z), std::max(std::max(x, y), z)), a, b, c);
    exact("within limits", BOTH((T x, T y, T z), std::max(std::min(x, y), z)), a, b, c);
    exact("within limits", BOTH((T x, T y, T z), std::min(std::max(x, y), z)), a, b, c);
    exact("compare", BOTH((T x, T y), int(x < y) | int(x <= y) << 1 | int(x > y) << 2 | int(x >= y) << 3 |
                                          int(x == y) << 4 | int(x != y) << 5), a, b);
    exact("add with saturation", BOTH((T x, T y), T(__builtin_elementwise_add_sat(x, y))), a, b);
    exact("subtract with saturation", BOTH((T x, T y), T(__builtin_elementwise_sub_sat(x, y))), a, b);
    exact("overflow of a sum", BOTH((T x, T y), [&] { T r; return int(__builtin_add_overflow(x, y, &r)); }()), a, b);
    exact("overflow of a difference", BOTH((T x, T y), [&] { T r; return int(__builtin_sub_overflow(x, y, &r)); }()), a, b);
    // Excluded at -O0: for 8 and 16 bits, clang 23 multiplies registers whose high halves are undefined (v_and_b16 v4.l,
    // v3.h, v4.l; v_mad_u64_u32 v[5:6], s4, v3, v4, 0).
    if (optimized || sizeof(T) > 2)
        exact("overflow of a product", BOTH((T x, T y), [&] { T r; return int(__builtin_mul_overflow(x, y, &r)); }()), a, b);
    exact("a bit", BOTH((T x, T y), x >> (y & (8 * sizeof(T) - 1)) & 1 ? 5 : 7), a, b);
    exact("distance", BOTH((T x, T y), T(x < y ? U(y) - U(x) : U(x) - U(y))), a, b);
    exact("constants", BOTH((T x, T y), T(x == T(5) ? y : x > T(17) ? T(U(x) * 3) : x < T(100) ? T(U(y) + 99) : T(~x))), a, b);
    exact("a branch", BOTH((T x, T y), [&] { T r = x; for (int i = 0; i < (x & 7); ++i) { if (r & 1) r = T(U(r) + U(y)); else r = T(r >> 1); if (r == T(3)) return T(42); } return r; }()), a, b);
    exact("sign of a field", BOTH((T x), T(T(U(x) << 3) >> 4)), a);
    // The same instructions for signed numbers.
    if constexpr (std::is_unsigned_v<T>) {
        exact("add", BOTH((T x, T y), T(U(x) + U(y))), a, b);
        exact("subtract", BOTH((T x, T y), T(U(x) - U(y))), a, b);
        exact("multiply", BOTH((T x, T y), T(uint64_t(x) * uint64_t(y))), a, b);
        exact("multiply-add", BOTH((T x, T y, T z), T(uint64_t(x) * uint64_t(y) + uint64_t(z))), a, b, c);
        exact("and", BOTH((T x, T y), T(x & y)), a, b);
        exact("or", BOTH((T x, T y), T(x | y)), a, b);
        exact("xor", BOTH((T x, T y), T(x ^ y)), a, b);
        exact("and not", BOTH((T x, T y), T(x & ~y)), a, b);
        exact("xnor", BOTH((T x, T y), T(~(x ^ y))), a, b);
        exact("select bits", BOTH((T x, T y, T z), T((x & y) | (~x & z))), a, b, c);
        exact("not", BOTH((T x), T(~x)), a);
        exact("negate", BOTH((T x), T(-U(x))), a);
        exact("shift left", BOTH((T x, T y), T(U(x) << (y & (8 * sizeof(T) - 1)))), a, b);
        exact("shift left by 3", BOTH((T x), T(U(x) << 3)), a);
        exact("shift and add", BOTH((T x, T y), T((U(x) << 2) + U(y))), a, b);
        exact("bits set", BOTH((T x), __builtin_popcountg(U(x))), a);
        exact("leading zeros", BOTH((T x), __builtin_clzg(U(x), 99)), a);
        exact("trailing zeros", BOTH((T x), __builtin_ctzg(U(x), 99)), a);
        exact("reverse bits", BOTH((T x), T(__builtin_elementwise_bitreverse(x))), a);
        exact("a mask", BOTH((T x, T y), T(((U(1) << (x & 7)) - 1) << (y & 7))), a, b);
        exact("a field at any offset", BOTH((T x, T y), T(U(x) >> (y & 7) & 15)), a, b);
        exact("not and", BOTH((T x, T y), T(~(x & y))), a, b);
        exact("not or", BOTH((T x, T y), T(~(x | y))), a, b);
        exact("or not", BOTH((T x, T y), T(x | ~y)), a, b);
        exact("xor three", BOTH((T x, T y, T z), T(x ^ y ^ z)), a, b, c);
        exact("or three", BOTH((T x, T y, T z), T(x | y | z)), a, b, c);
        exact("add three", BOTH((T x, T y, T z), T(U(x) + U(y) + U(z))), a, b, c);
        exact("a field", BOTH((T x), T(U(x) >> 3 & 15)), a);
    }
    if constexpr (std::is_signed_v<T>)
        exact("absolute", BOTH((T x), T(x < 0 ? -U(x) : U(x))), a);
}

// The bits of the wide product that `multiply` discards.
template <class T, class Wide> void high_product() {
    auto a = inputs<T>(0, 2), b = inputs<T>(1, 2);
    exact("high product", BOTH((T x, T y), T(Wide(x) * Wide(y) >> 8 * sizeof(T))), a, b);
    exact("wide product", BOTH((T x, T y), uint64_t(Wide(x) * Wide(y) >> 3)), a, b);
}
