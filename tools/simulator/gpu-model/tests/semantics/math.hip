// Functions of the device library and of the hardware, within the error bounds of the OpenCL C specification (table
// "relative error as ULP values"). The reference is computed in a wider type.
#include "check.h"

#define WITHIN(ulps, function, values)                                                                 \
    within(#function, ulps, BOTH((T x), T(std::function(x))), [](T x) { return std::function(Wide(x)); }, values)

template <class T, class Wide> void functions() {
    auto a = inputs<T>();
    WITHIN(4, sin, a);
    WITHIN(4, cos, a);
    WITHIN(5, tan, a);
    WITHIN(4, asin, a);
    WITHIN(4, acos, a);
    WITHIN(5, atan, a);
    WITHIN(4, sinh, a);
    WITHIN(4, cosh, a);
    WITHIN(5, tanh, a);
    WITHIN(4, asinh, a);
    WITHIN(4, acosh, a);
    WITHIN(5, atanh, a);
    WITHIN(3, exp, a);
    WITHIN(3, exp2, a);
    WITHIN(3, expm1, a);
    WITHIN(3, log, a);
    WITHIN(3, log2, a);
    WITHIN(3, log10, a);
    WITHIN(2, log1p, a);
    WITHIN(2, cbrt, a);
    WITHIN(16, erf, a);
    auto b = inputs<T>(0, 2), c = inputs<T>(1, 2);
    within("pow", 16, BOTH((T x, T y), T(std::pow(x, y))), [](T x, T y) { return std::pow(Wide(x), Wide(y)); }, b, c);
    within("atan2", 6, BOTH((T x, T y), T(std::atan2(x, y))), [](T x, T y) { return std::atan2(Wide(x), Wide(y)); }, b, c);
    within("hypot", 4, BOTH((T x, T y), T(std::hypot(x, y))), [](T x, T y) { return std::hypot(Wide(x), Wide(y)); }, b, c);
    exact("fmod", BOTH((T x, T y), T(std::fmod(x, y))), b, c);
    exact("remainder", BOTH((T x, T y), T(std::remainder(x, y))), b, c);
    exact("fdim", BOTH((T x, T y), T(std::fdim(x, y))), b, c);
    exact("nextafter", BOTH((T x, T y), x == y ? T(0) : T(std::nextafter(x, y))), b, c);
    exact("ilogb", BOTH((T x), x != x || x == T(0) || x - x != x - x ? 0 : int(std::ilogb(x))), a);
    exact("logb", BOTH((T x), T(std::logb(x))), a);
    exact("lround", BOTH((T x), std::fabs(x) < T(1e9) ? long(std::lround(x)) : 0l), a);
    exact("lrint", BOTH((T x), std::fabs(x) < T(1e9) ? long(std::lrint(x)) : 0l), a);
    exact("frexp", BOTH((T x), [&] { int n; T m = std::frexp(x, &n); return m + (x - x == x - x ? T(n) : T(0)); }()), a);
}

// The instructions themselves: one unit in the last place (guide, chapter 7). Arguments and results are not denormal,
// because the instructions flush denormals.
template <class F, class G> void hardware(const char *name, F f, G reference, bool positive) {
    std::vector<float> values(count);
    for (auto &value : values) {
        do
            value = any<float>();
        while (!(std::fabs(value) > 1e-30f && std::fabs(value) < 1e30f));
        if (positive)
            value = std::fabs(value);
    }
    within(name, 1.0001, f, reference, values);
}

#if defined(__HIP_DEVICE_COMPILE__)
#define DEVICE(expression) expression
#else
#define DEVICE(expression) 0.0f
#endif

int main(int argc, char **argv) {
    start(argc, argv);
    functions<float, double>();
    functions<double, long double>();
    hardware("v_rcp_f32", BOTH((float x), DEVICE(__builtin_amdgcn_rcpf(x))), [](float x) { return 1.0 / x; }, false);
    hardware("v_rsq_f32", BOTH((float x), DEVICE(__builtin_amdgcn_rsqf(x))), [](float x) { return 1.0 / std::sqrt(double(x)); }, true);
    hardware("v_sqrt_f32", BOTH((float x), DEVICE(__builtin_amdgcn_sqrtf(x))), [](float x) { return std::sqrt(double(x)); }, true);
    within("rsqrt", 2, BOTH((float x), DEVICE(rsqrtf(x))), [](float x) { return 1.0 / std::sqrt(double(x)); }, inputs<float>());
    return finish();
}
