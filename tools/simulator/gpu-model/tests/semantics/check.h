// Helpers for the programs of the semantics test: inputs from a seed, device memory, and the comparison of the device's
// results with the host's.
#pragma once

#include <hip/hip_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#define HIP(call)                                                                                      \
    do {                                                                                               \
        hipError_t status = (call);                                                                    \
        if (status != hipSuccess) {                                                                    \
            std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, hipGetErrorString(status));      \
            std::exit(2);                                                                              \
        }                                                                                              \
    } while (0)

// A function for host and device.
#define BOTH(arguments, ...) [] __host__ __device__ arguments { return __VA_ARGS__; }

// Whether the device code is optimized. The host code is compiled once, without optimization.
inline bool optimized;
inline uint64_t seed;
inline int failures;

// SplitMix64.
inline uint64_t next_random() {
    static uint64_t state = seed;
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

// The arguments: the seed, and the optimization level of the device code.
inline void start(int argc, char **argv) {
    seed = argc > 1 ? std::strtoull(argv[1], nullptr, 0) : 1;
    optimized = argc <= 2 || std::strcmp(argv[2], "-O0") != 0;
}

inline int finish() {
    if (failures)
        std::printf("%d checks failed, seed %llu\n", failures, (unsigned long long)seed);
    return failures != 0;
}

template <class T> T from_bits(uint64_t bits) {
    T value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

template <class T> uint64_t to_bits(T value) {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    return bits;
}

template <class T> constexpr bool is_float = !std::is_integral_v<T>;
// Mantissa bits without the implicit one.
template <class T> constexpr int mantissa = 0;
template <> inline constexpr int mantissa<_Float16> = 10;
template <> inline constexpr int mantissa<__bf16> = 7;
template <> inline constexpr int mantissa<float> = 23;
template <> inline constexpr int mantissa<double> = 52;

template <class T> bool is_nan(T value) { return value != value; }

// Special values: limits, and values next to them.
template <class T> std::vector<T> special() {
    std::vector<T> list;
    int width = 8 * sizeof(T);
    if constexpr (is_float<T>) {
        int m = mantissa<T>;
        uint64_t one = ((1ull << (width - 2 - m)) - 1) << m;
        uint64_t infinity = ((1ull << (width - 1 - m)) - 1) << m;
        for (uint64_t bits : std::initializer_list<uint64_t>{0, 1, 3, (1ull << m) - 1, 1ull << m, one - 1, one,
                              one + 1, one + (1ull << m), one - (1ull << m), one + (3ull << (m - 1)),
                              infinity - 1, infinity, infinity | 1ull << (m - 1)}) {
            list.push_back(from_bits<T>(bits));
            list.push_back(from_bits<T>(bits | 1ull << (width - 1)));
        }
    } else {
        for (uint64_t bits : std::initializer_list<uint64_t>{0, 1, 2, 7, 31, 100})
            for (uint64_t b : std::initializer_list<uint64_t>{bits, ~bits, bits ^ 1ull << (width - 1),
                                                               ~bits ^ 1ull << (width - 1)})
                list.push_back(T(b));
    }
    return list;
}

// Random bits. Half of the floats have an exponent close to the exponent of 1, so that sums are not trivial.
template <class T> T any() {
    T value = from_bits<T>(next_random());
    if constexpr (is_float<T>) {
        int width = 8 * sizeof(T), m = mantissa<T>;
        if (next_random() & 1) {
            uint64_t bias = (1ull << (width - 2 - m)) - 1;
            uint64_t bits = next_random() & ((1ull << m) - 1);
            bits |= (bias - 8 + next_random() % 16) << m | (next_random() & 1) << (width - 1);
            value = from_bits<T>(bits);
        }
    } else if (next_random() % 4 == 0) {
        value = T(next_random() % 16);
    }
    return value;
}

constexpr size_t count = 1000;

// The values of operand `part` of a function with `parts` operands: all combinations of special values, then random values.
template <class T> std::vector<T> inputs(int part = 0, int parts = 1) {
    std::vector<T> special_values = special<T>(), values(count);
    size_t n = special_values.size(), combinations = 1, stride = 1;
    for (int i = 0; i < parts; ++i)
        combinations *= n;
    for (int i = 0; i < part; ++i)
        stride *= n;
    size_t fixed = std::min(combinations, count * 2 / 3);
    for (size_t i = 0; i < count; ++i) {
        // A random selection if there are too many combinations.
        size_t which = combinations > fixed ? next_random() % n : i / stride % n;
        values[i] = i < fixed ? special_values[which] : any<T>();
    }
    return values;
}

template <class T> T *upload(const std::vector<T> &values) {
    T *memory;
    HIP(hipMalloc(&memory, values.size() * sizeof(T)));
    HIP(hipMemcpy(memory, values.data(), values.size() * sizeof(T), hipMemcpyHostToDevice));
    return memory;
}

template <class T> std::vector<T> download(const T *memory, size_t n) {
    std::vector<T> values(n);
    HIP(hipMemcpy(values.data(), memory, n * sizeof(T), hipMemcpyDeviceToHost));
    return values;
}

template <class T> void show(const char *name, T value) {
    if constexpr (is_float<T>)
        std::printf(" %s %.9g (0x%llx)", name, double(float(value)), (unsigned long long)to_bits(value));
    else
        std::printf(" %s 0x%llx", name, (unsigned long long)to_bits(value));
}

template <class R> bool same(R host, R device) {
    if constexpr (is_float<R>)
        if (is_nan(host) && is_nan(device))
            return true;
    return std::memcmp(&host, &device, sizeof host) == 0;
}

// Prints the first three differences and counts all.
struct Report {
    const char *name;
    int wrong = 0;
    explicit Report(const char *name) : name(name) {}
    ~Report() {
        if (wrong) {
            std::printf("  %d results of %s are wrong\n", wrong, name);
            ++failures;
        }
    }
    template <class R, class... A> void differ(size_t i, R host, R device, A... arguments) {
        if (wrong++ < 3) {
            std::printf("%s [%zu]:", name, i);
            (show("of", arguments), ...);
            show("host", host);
            show("device", device);
            std::printf("\n");
        }
    }
    template <class R, class... A> void equal(size_t i, R host, R device, A... arguments) {
        if (!same(host, device))
            differ(i, host, device, arguments...);
    }
};

template <class F, class R, class... A> __global__ void apply(F f, R *out, size_t n, const A *...in) {
    size_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = f(in[i]...);
}

// Like `apply`, but all lanes of a wave have the same element, so that clang generates scalar instructions.
template <class F, class R, class... A> __global__ void apply_to_all(F f, R *out, size_t n, const A *__restrict... in) {
    for (size_t i = blockIdx.x; i < n; i += gridDim.x)
        out[i] = f(in[i]...);
}

// In device code, a check is only its kernel: clang would take as long for the rest as for the kernel.
#ifdef __HIP_DEVICE_COMPILE__
constexpr bool on_host = false;
#else
constexpr bool on_host = true;
#endif

// Whether to use `apply_to_all`, by the type of the result. A program can specialize this variable.
template <class R> constexpr bool scalar = false;

template <class F, class R, class... A> constexpr auto kernel() {
    if constexpr (scalar<R>)
        return &apply_to_all<F, R, A...>;
    else
        return &apply<F, R, A...>;
}

template <class R, class F, class... A> std::vector<R> on_device(F f, const std::vector<A> &...in) {
    R *out;
    HIP(hipMalloc(&out, count * sizeof(R)));
    // The size of a workgroup is not a multiple of the wave size, and the last workgroup is partial.
    unsigned block = scalar<R> ? 1 : 160, grid = scalar<R> ? 50 : (count + block - 1) / block;
    kernel<F, R, A...>()<<<grid, block>>>(f, out, count, upload(in)...);
    HIP(hipGetLastError());
    return download(out, count);
}

// Checks that the results are equal in all bits, or that both are NaN.
template <class F, class... A> void exact(const char *name, F f, const std::vector<A> &...in) {
    using R = decltype(f(in[0]...));
    if constexpr (on_host) {
        std::vector<R> device = on_device<R>(f, in...);
        Report report(name);
        for (size_t i = 0; i < count; ++i)
            report.equal(i, f(in[i]...), device[i], in[i]...);
    } else {
        (void)kernel<F, R, A...>();
    }
}

// Checks that the result differs from the reference by at most `ulps` units in the last place. The reference has more
// precision.
template <class F, class G, class... A>
void within(const char *name, double ulps, F f, G reference, const std::vector<A> &...in) {
    using R = decltype(f(in[0]...));
    if constexpr (on_host) {
        std::vector<R> device = on_device<R>(f, in...);
        Report report(name);
        for (size_t i = 0; i < count; ++i) {
            auto exact = reference(in[i]...);
            R rounded = R(exact);
            if (same(rounded, device[i]))
                continue;
            bool close = false;
            if (!is_nan(rounded) && !is_nan(device[i]) && !std::isinf(double(device[i]))) {
                int exponent;
                std::frexp(exact, &exponent);
                exponent = std::max(exponent, std::numeric_limits<R>::min_exponent);
                auto ulp = std::ldexp(decltype(exact)(1), exponent - mantissa<R> - 1);
                close = std::fabs(exact - device[i]) <= ulps * ulp;
            } else if (!is_nan(device[i]) && std::isinf(double(device[i]))) {
                // The exact result is within the bound of infinity.
                auto largest = std::numeric_limits<R>::max();
                close = std::fabs(exact) >= largest * (1 - ulps * std::ldexp(1.0, -mantissa<R>));
                close = close && (exact < 0) == (device[i] < 0);
            }
            if (!close)
                report.differ(i, rounded, device[i], in[i]...);
        }
    } else {
        (void)kernel<F, R, A...>();
    }
}
