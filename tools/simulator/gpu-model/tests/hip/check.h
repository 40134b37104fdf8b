// Helpers for the test programs: device arrays, and a count of wrong results.
#pragma once
#include <hip/hip_runtime.h>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#define HIP(call)                                                                                 \
    do {                                                                                          \
        hipError_t error = (call);                                                                \
        if (error != hipSuccess) {                                                                \
            printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, hipGetErrorString(error));       \
            exit(1);                                                                              \
        }                                                                                         \
    } while (0)

static int wrong = 0;

// Prints the first ten wrong results and counts all.
#define EXPECT_EQ(got, wanted, at)                                                                \
    do {                                                                                          \
        auto got_ = (got);                                                                        \
        decltype(got_) wanted_ = (wanted);                                                        \
        if (!(got_ == wanted_) && wrong++ < 10)                                                   \
            printf("%s:%d: %s at %lld is %.17g, not %.17g\n", __FILE__, __LINE__, #got,           \
                   (long long)(at), (double)got_, (double)wanted_);                               \
    } while (0)

static int finish() {
    HIP(hipDeviceSynchronize());
    printf(wrong ? "%d wrong results\n" : "all results are correct\n", wrong);
    return wrong != 0;
}

template <class T> class Device {
    T *data;
    size_t count;

  public:
    explicit Device(const std::vector<T> &from) : count(from.size()) {
        HIP(hipMalloc(&data, count * sizeof(T)));
        HIP(hipMemcpy(data, from.data(), count * sizeof(T), hipMemcpyHostToDevice));
    }
    explicit Device(size_t count) : Device(std::vector<T>(count)) {}
    Device(const Device &) = delete;
    ~Device() { HIP(hipFree(data)); }
    operator T *() const { return data; }
    std::vector<T> host() const {
        std::vector<T> out(count);
        HIP(hipMemcpy(out.data(), data, count * sizeof(T), hipMemcpyDeviceToHost));
        return out;
    }
};

// The seed is fixed: all runs use the same numbers.
static std::mt19937_64 random_bits(20261121);

template <class T> std::vector<T> random_integers(size_t count) {
    std::vector<T> out(count);
    for (auto &value : out)
        value = (T)random_bits();
    return out;
}
