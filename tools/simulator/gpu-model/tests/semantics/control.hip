// Divergent control flow: nested loops, early returns, switches, calls, recursion, function pointers and virtual
// functions, with arrays in scratch memory that are indexed at run time.
#include "check.h"

#define FUNCTION __host__ __device__ __attribute__((noinline))

FUNCTION int collatz(uint32_t n) {
    int steps = 0;
    n = n % 100000 + 1;
    while (n != 1) {
        if (n & 1) {
            n = 3 * n + 1;
        } else {
            do
                n >>= 1, ++steps;
            while (!(n & 1) && n > 8);
        }
        if (++steps > 500)
            break;
    }
    return steps;
}

FUNCTION uint32_t early(uint32_t x) {
    for (uint32_t i = 0; i < 40; ++i) {
        for (uint32_t j = i; j < 40; j += 1 + (x & 3)) {
            if ((x >> (j & 31) & 3) == 2)
                return i * 100 + j;
            if ((x ^ i * j) % 11 == 3)
                break;
            if ((x + j) % 7 == 1)
                continue;
            x = x * 1664525 + 1013904223;
        }
        if (x % 19 == 5)
            return x;
    }
    return ~x;
}

FUNCTION uint32_t dense_switch(uint32_t x) {
    uint32_t y = x;
    for (int i = 0; i < 8; ++i) {
        switch (y % 12) {
        case 0: y += 5; break;
        case 1: y ^= x; [[fallthrough]];
        case 2: y *= 3; break;
        case 3: y = y << 3 | y >> 29; break;
        case 4: return y;
        case 5: y -= 77; break;
        case 6: y = ~y; break;
        case 7: y /= 3; break;
        case 8: y = y * y; break;
        case 9: continue;
        case 10: y += x >> 3; break;
        default: y >>= 1;
        }
        y += 1000003;
    }
    return y;
}

FUNCTION uint32_t sparse_switch(uint32_t x) {
    switch (x % 100000) {
    case 3: return 1;
    case 77: return 2;
    case 50000: return 3;
    case 99999: return 4;
    }
    return x < 100 ? 5 : x > 4000000000u ? 6 : 7;
}

FUNCTION uint32_t machine(uint32_t x) {
    uint32_t n = 0;
start:
    if (++n > 60)
        return x;
    if (x & 1)
        goto odd;
    x = x / 2 + 7;
    if (x % 5 == 0)
        goto start;
    x ^= 0x5555;
odd:
    x = x * 3 + n;
    if (x % 3 == 0)
        goto start;
    if (x & 64)
        goto odd2;
    x += 11;
    goto start;
odd2:
    return x ^ n;
}

FUNCTION uint64_t fibonacci(uint32_t n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

FUNCTION uint32_t ackermann(uint32_t m, uint32_t n) {
    return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

FUNCTION void quicksort(int16_t *begin, int16_t *end) {
    if (end - begin < 2)
        return;
    int16_t pivot = *begin, *middle = begin;
    for (int16_t *p = begin + 1; p < end; ++p)
        if (*p < pivot) {
            int16_t value = *p;
            *p = *++middle;
            *middle = value;
        }
    *begin = *middle;
    *middle = pivot;
    quicksort(begin, middle);
    quicksort(middle + 1, end);
}

FUNCTION uint64_t sorted(uint32_t x) {
    int16_t values[23];
    for (int i = 0; i < 23; ++i)
        values[i] = int16_t((x = x * 1103515245 + 12345) >> 12);
    quicksort(values, values + 5 + x % 18);
    uint64_t hash = 0;
    for (int16_t value : values)
        hash = hash * 31 + uint16_t(value);
    return hash;
}

// Arrays with elements of 1 to 16 bytes.
FUNCTION uint64_t arrays(uint32_t x) {
    uint8_t bytes[61];
    uint16_t halves[17];
    uint32_t words[9][5];
    uint64_t doubles[7];
    float4 quads[4];
    for (int i = 0; i < 61; ++i)
        bytes[i] = uint8_t(i * x);
    for (int i = 0; i < 17; ++i)
        halves[i] = uint16_t(bytes[i * 3] * 257 + i);
    for (int i = 0; i < 45; ++i)
        words[i % 9][i / 9] = x ^ i * 0x10001;
    for (int i = 0; i < 7; ++i)
        doubles[i] = uint64_t(x) << i * 4;
    for (int i = 0; i < 4; ++i)
        quads[i] = {float(i), float(x % 100), float(x % 7 + i), 1};
    uint64_t sum = 0;
    for (int i = 0; i < 20; ++i) {
        x = x * 69069 + 1;
        bytes[x % 61] ^= uint8_t(halves[(x >> 4) % 17]);
        words[(x >> 8) % 9][(x >> 13) % 5] += bytes[(x >> 2) % 61];
        doubles[(x >> 5) % 7] -= words[(x >> 9) % 9][(x >> 17) % 5];
        quads[x >> 30].y += quads[x >> 28 & 3].z;
        sum = sum * 3 + doubles[(x >> 21) % 7] + uint64_t(quads[x >> 26 & 3].y);
    }
    return sum;
}

FUNCTION uint32_t times_three(uint32_t x) { return x * 3; }
FUNCTION uint32_t minus_nine(uint32_t x) { return x - 9; }
FUNCTION uint32_t half(uint32_t x) { return x >> 1; }
FUNCTION uint32_t through(uint32_t x) { return uint32_t(fibonacci(x % 7)) + collatz(x); }

FUNCTION uint32_t pointers(uint32_t x) {
    uint32_t (*const table[])(uint32_t) = {times_three, minus_nine, half, through, early};
    for (int i = 0; i < 6; ++i)
        x = table[x % 5](x) + i;
    return x;
}

struct Shape {
    uint32_t size;
    __host__ __device__ explicit Shape(uint32_t size) : size(size) {}
    FUNCTION virtual uint64_t area() const = 0;
    FUNCTION virtual uint64_t twice() const { return 2 * area(); }
};
struct Square : Shape {
    using Shape::Shape;
    FUNCTION uint64_t area() const override { return uint64_t(size) * size; }
};
struct Stripe : Shape {
    uint32_t width = 3;
    using Shape::Shape;
    FUNCTION uint64_t area() const override { return uint64_t(size) * width; }
    FUNCTION uint64_t twice() const override { return area() ^ 1; }
};

FUNCTION uint64_t ask(const Shape &shape) { return shape.twice() + shape.area() % 3; }

FUNCTION uint64_t virtuals(uint32_t x) {
    Square square(x % 1000);
    Stripe stripe(x >> 10);
    const Shape *shapes[] = {&square, &stripe};
    uint64_t sum = 0;
    for (int i = 0; i < 5; ++i)
        sum += ask(*shapes[x >> i & 1]);
    return sum;
}

struct Large {
    uint64_t a[5];
    uint8_t b[7];
    uint16_t c;
};

FUNCTION Large change(Large large, int how) {
    large.a[how % 5] += large.c;
    large.b[how % 7] = uint8_t(how);
    large.c ^= uint16_t(large.a[(how + 1) % 5]);
    return large;
}

FUNCTION uint64_t structures(uint32_t x) {
    Large large = {{x, x + 1, x + 2, x + 3, x + 4}, {1, 2, 3, 4, 5, 6, 7}, uint16_t(x)};
    Large other = change(large, x % 35);
    large = change(other, (x >> 8) % 35);
    uint64_t hash = large.c;
    for (uint64_t a : large.a)
        hash = hash * 7 + a;
    for (uint8_t b : large.b)
        hash = hash * 3 + b;
    return hash;
}

FUNCTION uint32_t many(uint32_t a, uint64_t b, uint8_t c, float d, uint32_t e, double f, uint32_t g, uint64_t h, uint32_t i,
                       uint32_t j, uint32_t k, uint32_t l, uint64_t m, uint32_t n, uint16_t o, uint32_t p, uint64_t q,
                       uint32_t r, uint32_t s, uint32_t t, uint32_t u, uint64_t v, uint32_t w, uint32_t x, uint32_t y) {
    return a + uint32_t(b) * 3 + c * 5 + uint32_t(d) * 7 + e * 9 + uint32_t(f) * 11 + g * 13 + uint32_t(h >> 32) * 15 + i * 17 +
           j * 19 + k * 21 + l * 23 + uint32_t(m) * 25 + n * 27 + o * 29 + p * 31 + uint32_t(q) * 33 + r * 35 + s * 37 +
           t * 39 + u * 41 + uint32_t(v >> 7) * 43 + w * 45 + x * 47 + y * 49;
}

int main(int argc, char **argv) {
    start(argc, argv);
    // Recursion needs more than the 1 KiB of stack that kernels of unknown depth get.
    HIP(hipDeviceSetLimit(hipLimitStackSize, 8192));
    auto a = inputs<uint32_t>();
    exact("collatz", BOTH((uint32_t x), collatz(x)), a);
    exact("early returns", BOTH((uint32_t x), early(x)), a);
    exact("a dense switch", BOTH((uint32_t x), dense_switch(x)), a);
    exact("a sparse switch", BOTH((uint32_t x), sparse_switch(x)), a);
    exact("gotos", BOTH((uint32_t x), machine(x)), a);
    exact("recursion", BOTH((uint32_t x), fibonacci(x % 13)), a);
    exact("recursion in an argument", BOTH((uint32_t x), ackermann(x % 3, x / 3 % 4)), a);
    exact("quicksort", BOTH((uint32_t x), sorted(x)), a);
    exact("arrays", BOTH((uint32_t x), arrays(x)), a);
    exact("function pointers", BOTH((uint32_t x), pointers(x)), a);
    exact("virtual functions", BOTH((uint32_t x), virtuals(x)), a);
    exact("structures", BOTH((uint32_t x), structures(x)), a);
    exact("many arguments", BOTH((uint32_t x), many(x, x + 1, x + 2, x % 3, x + 4, x % 5, x + 6, uint64_t(x) << 7, x + 8, x + 9,
                                                    x + 10, x + 11, x + 12, x + 13, x + 14, x + 15, x + 16, x + 17, x + 18,
                                                    x + 19, x + 20, uint64_t(x) << 21, x + 22, x + 23, x + 24)), a);
    return finish();
}
