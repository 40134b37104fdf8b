// Integer arithmetic of all widths, and conversions between integers.
#include "integer.h"

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
    // Excluded at -O0: clang 23 copies only half of the word before it swaps the bytes (v_mov_b16 v3.l, v1.l; v_perm_b32 v3, 0, v3, s4).
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
