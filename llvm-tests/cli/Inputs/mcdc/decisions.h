// Decisions of many forms. FUNCTION is `static __device__ __host__ __noinline__`, or its host part.
#include "macros.h"
#include "negations.h"

FUNCTION int plain(unsigned i) {
    bool a = i & 1, b = i & 2, c = i & 4, d = i & 8;
    int result = 0;
    if (a && b)
        result |= 1;
    if ((a || b) && !c)
        result |= 2;
    // Over several lines.
    if (a && (b ||
              (c && d)))
        result |= 4;
    while (a && result++ < 5)
        ;
    for (int n = 0; n < 3 && !(b || d); n++)
        result++;
    return result;
}

FUNCTION bool same(bool value) { return value; }

FUNCTION int nested(unsigned i) {
    bool a = i & 1, b = i & 2, c = i & 4;
    return same(a || c) && b ? 1 : same(a && same(b || c)) || same(!a && b && c) ? 2 : 3;
}

// clang has no bits for the decisions b && c and b || c in the last line, because they are operands of a ?: that is a condition.
FUNCTION int conditional(unsigned i) {
    bool a = i & 1, b = i & 2, c = i & 4;
    bool chosen = a ? b && c : b || c;
    int result = (chosen ? a : c) && b && i != 3 ? 1 : 2;
    return result + ((a ? b && c : b || c) && i != 5 ? 1 : 2);
}

FUNCTION int macros(unsigned i) {
    bool a = i & 1, b = i & 4;
    int result = BETWEEN(i, 2, 5) ? 1 : 2;
    if (a && IS_ODD(i >> 1) && b)
        result += BETWEEN(i, 3u, 9u && a);
    return result + (IS_ODD(i) || b);
}

FUNCTION int constants(unsigned i) {
    bool a = i & 1, b = i & 2;
    return (a && true && b) || (sizeof(int) == 8 && a) ? 1 : 2;
}

template <typename T, int N> FUNCTION int instance(T value) {
    return (N > 1 && value > 2) || value == T(N) ? 1 : 2;
}

FUNCTION int lambda(unsigned i) {
    auto both = [i](unsigned bit) { return (i & bit) && (i & 2); };
    return both(1) || both(4) ? 1 : 2;
}

// Never called.
FUNCTION int never(unsigned i) { return i > 3 && i < 7 ? 1 : 2; }

FUNCTION int decide(unsigned i) {
    int result = plain(i) + nested(i) + conditional(i) + macros(i) + constants(i) + lambda(i);
    // The first instance shows the effect of another condition than the second one.
    result += i < 4 ? instance<int, 2>(i) : instance<long, 1>(i - 4);
    return result + negations(i) + (i > 99 ? never(i) : 0);
}
