// Instructions of RDNA4: scalar floats, the minimum and maximum of IEEE 754-2019, narrow scalar loads, and others.
#include "check.h"

// A value that all lanes have. clang uses scalar instructions.
template <class T> struct Uniform {
    T value;
};
template <class T> constexpr bool scalar<Uniform<T>> = true;
template <class T> constexpr bool is_float<Uniform<T>> = false;

template <class T> bool same(Uniform<T> host, Uniform<T> device) { return same(host.value, device.value); }

#define UNIFORM(arguments, ...)                                                                        \
    [] __host__ __device__ arguments {                                                                 \
        auto value = __VA_ARGS__;                                                           \
        return Uniform<decltype(value)>{value};                                                        \
    }

template <class T> void scalar_floats() {
    auto a = inputs<T>(0, 2), b = inputs<T>(1, 2), c = inputs<T>(0, 3), d = inputs<T>(1, 3), e = inputs<T>(2, 3);
    exact("add", UNIFORM((T x, T y), T(x + y)), a, b);
    exact("subtract", UNIFORM((T x, T y), T(x - y)), a, b);
    exact("multiply", UNIFORM((T x, T y), T(x * y)), a, b);
    exact("constants", UNIFORM((T x, T y), T(T(x * T(0.5)) + T(y * T(-4)))), a, b);
    exact("fused multiply-add", UNIFORM((T x, T y, T z), T(__builtin_elementwise_fma(x, y, z))), c, d, e);
    exact("fused, a constant", UNIFORM((T x, T y), T(__builtin_elementwise_fma(x, y, T(1.375)))), a, b);
    exact("fused, a factor", UNIFORM((T x, T y), T(__builtin_elementwise_fma(x, T(1.375), y))), a, b);
    exact("floor", UNIFORM((T x), T(__builtin_elementwise_floor(x))), a);
    exact("ceil", UNIFORM((T x), T(__builtin_elementwise_ceil(x))), a);
    exact("trunc", UNIFORM((T x), T(__builtin_elementwise_trunc(x))), a);
    exact("roundeven", UNIFORM((T x), T(__builtin_elementwise_roundeven(x))), a);
    // IEEE 754 does not define which of two zeros is the smaller one.
    exact("minnum", UNIFORM((T x, T y), x == y ? T(0) : T(__builtin_elementwise_minnum(x, y))), a, b);
    exact("maxnum", UNIFORM((T x, T y), x == y ? T(0) : T(__builtin_elementwise_maxnum(x, y))), a, b);
    exact("minimum", UNIFORM((T x, T y), T(__builtin_elementwise_minimum(x, y))), a, b);
    exact("maximum", UNIFORM((T x, T y), T(__builtin_elementwise_maximum(x, y))), a, b);
    exact("compare", UNIFORM((T x, T y), int(x < y) | int(x <= y) << 1 | int(x > y) << 2 | int(x >= y) << 3 |
                                             int(x == y) << 4 | int(x != y) << 5 | int(!(x < y)) << 6 |
                                             int(!(x >= y)) << 7 | int(!(x <= y)) << 8 | int(!(x > y)) << 9 |
                                             __builtin_isunordered(x, y) << 10 | __builtin_islessgreater(x, y) << 11), a, b);
    exact("a branch", UNIFORM((T x, T y), x < y ? T(x + T(1)) : x == y ? T(3) : T(y - x)), a, b);
    exact("to an integer", UNIFORM((T x), x >= T(-30000) && x <= T(30000) ? int(x) : 99), a);
    exact("to an unsigned integer", UNIFORM((T x), x >= T(0) && x <= T(60000) ? unsigned(x) : 99u), a);
    exact("from an integer", UNIFORM((int x), T(x)), inputs<int>());
    exact("from an unsigned integer", UNIFORM((unsigned x), T(x)), inputs<unsigned>());
    exact("to a half", UNIFORM((T x), _Float16(x)), a);
    exact("to a float", UNIFORM((T x), float(x)), a);
    exact("square root", UNIFORM((T x), T(__builtin_elementwise_sqrt(x))), a);
    exact("divide", UNIFORM((T x, T y), T(x / y)), a, b);
}

template <class T> void extremes() {
    auto a = inputs<T>(0, 2), b = inputs<T>(1, 2), c = inputs<T>(0, 3), d = inputs<T>(1, 3), e = inputs<T>(2, 3);
    exact("minimum", BOTH((T x, T y), T(__builtin_elementwise_minimum(x, y))), a, b);
    exact("maximum", BOTH((T x, T y), T(__builtin_elementwise_maximum(x, y))), a, b);
    exact("minimum of three", BOTH((T x, T y, T z), T(__builtin_elementwise_minimum(__builtin_elementwise_minimum(x, y), z))), c, d, e);
    exact("maximum of three", BOTH((T x, T y, T z), T(__builtin_elementwise_maximum(__builtin_elementwise_maximum(x, y), z))), c, d, e);
    exact("within limits", BOTH((T x, T y, T z), T(__builtin_elementwise_minimum(__builtin_elementwise_maximum(x, y), z))), c, d, e);
    exact("within limits", BOTH((T x, T y, T z), T(__builtin_elementwise_maximum(__builtin_elementwise_minimum(x, y), z))), c, d, e);
}

// Scalar loads of 8 and 16 bits.
template <class T> void narrow_loads() {
    exact("load", BOTH((T x), Uniform<int>{int(x) * 3}), inputs<T>());
}

// Lanes of the row, or of the other row of the half wave.
__global__ void permute(uint32_t *out, const uint32_t *in, const uint32_t *index) {
    int i = threadIdx.x;
#ifdef __HIP_DEVICE_COMPILE__
    out[3 * i] = __builtin_amdgcn_permlane16_var(0, in[i], index[i], true, false);
    out[3 * i + 1] = __builtin_amdgcn_permlanex16_var(0, in[i], index[i], true, false);
    out[3 * i + 2] = __builtin_amdgcn_ds_bpermute_fi_b32(int(index[i] * 4), int(in[i]));
#endif
}

void permutes() {
    constexpr int lanes = 32;
    std::vector<uint32_t> in(lanes), index(lanes);
    for (int i = 0; i < lanes; ++i)
        in[i] = uint32_t(next_random()), index[i] = uint32_t(next_random());
    auto *out = upload(std::vector<uint32_t>(3 * lanes));
    permute<<<1, lanes>>>(out, upload(in), upload(index));
    auto got = download(out, 3 * lanes);
    Report report("permute");
    for (int i = 0; i < lanes; ++i) {
        int from = index[i] & 15;
        report.equal(3 * i, in[(i & 16) | from], got[3 * i]);
        report.equal(3 * i + 1, in[((i & 16) ^ 16) | from], got[3 * i + 1]);
        report.equal(3 * i + 2, in[index[i] & 31], got[3 * i + 2]);
    }
}

// The lanes subtract from one counter, which does not become negative: with a condition, and with a limit.
__global__ void subtract(uint32_t *counters, uint32_t *old) {
#ifdef __HIP_DEVICE_COMPILE__
    __shared__ uint32_t in_lds[2];
    if (threadIdx.x == 0)
        in_lds[0] = in_lds[1] = 100;
    __syncthreads();
    uint32_t before, amount = 7;
    asm volatile("global_atomic_cond_sub_u32 %0, %1, %2, off th:TH_ATOMIC_RETURN\n\ts_wait_loadcnt 0x0"
                 : "=v"(before) : "v"(counters), "v"(amount) : "memory");
    old[threadIdx.x] = before;
    asm volatile("flat_atomic_cond_sub_u32 %0, %1" : : "v"(counters + 1), "v"(9) : "memory");
    using Local = __attribute__((address_space(3))) uint32_t *;
    asm volatile("ds_cond_sub_u32 %0, %1\n\ts_wait_dscnt 0x0" : : "v"((Local)in_lds), "v"(amount) : "memory");
    asm volatile("ds_sub_clamp_u32 %0, %1 offset:4\n\ts_wait_dscnt 0x0" : : "v"((Local)in_lds), "v"(amount) : "memory");
    __syncthreads();
    if (threadIdx.x == 0)
        counters[2] = in_lds[0], counters[3] = in_lds[1];
#endif
}

void subtractions() {
    constexpr int lanes = 32;
    auto *counters = upload(std::vector<uint32_t>{100, 100, 0, 1});
    auto *old = upload(std::vector<uint32_t>(lanes));
    subtract<<<1, lanes>>>(counters, old);
    auto got = download(counters, 4), seen = download(old, lanes);
    Report report("conditional subtraction");
    report.equal(0, 100u % 7, got[0]);
    report.equal(1, 100u % 9, got[1]);
    report.equal(2, 100u % 7, got[2]);
    report.equal(3, 0u, got[3]);
    for (int i = 0; i < lanes; ++i)
        report.equal(i + 4, std::max(100 - 7 * i, 100 % 7), int(seen[i]));
}

// A wave works between its signal and its wait. The last wave to signal does not wait for the others.
__global__ void split_barrier(int *out, int rounds) {
#ifdef __HIP_DEVICE_COMPILE__
    __shared__ int arrived[8], sum;
    int wave = threadIdx.x / warpSize, waves = blockDim.x / warpSize;
    for (int round = 0; round < rounds; ++round) {
        if (threadIdx.x % warpSize == 0)
            arrived[wave] = round * 10 + wave;
        __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
        __builtin_amdgcn_s_barrier_signal(-1);
        for (int i = 0; i < wave * 100; ++i)
            __builtin_amdgcn_s_sleep(1);
        __builtin_amdgcn_s_barrier_wait(-1);
        __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
        if (threadIdx.x == 0) {
            sum = 0;
            for (int i = 0; i < waves; ++i)
                sum += arrived[i];
            out[round] = sum;
        }
        __syncthreads();
    }
#endif
}

void split_barriers() {
    constexpr int rounds = 5, waves = 4;
    auto *out = upload(std::vector<int>(rounds));
    split_barrier<<<1, 32 * waves>>>(out, rounds);
    auto got = download(out, rounds);
    Report report("split barrier");
    for (int round = 0; round < rounds; ++round)
        report.equal(round, round * 10 * waves + waves * (waves - 1) / 2, got[round]);
}

// The numbers of the workgroup and of its size, in all dimensions.
__global__ void workgroups(uint32_t *out) {
    if (threadIdx.x + threadIdx.y + threadIdx.z == 0)
        out[(blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x] =
            blockIdx.x + 100 * blockIdx.y + 10000 * blockIdx.z + 1000000 * blockDim.y;
}

void grids() {
    dim3 grid(5, 7, 3), block(4, 3, 2);
    auto *out = upload(std::vector<uint32_t>(grid.x * grid.y * grid.z));
    workgroups<<<grid, block>>>(out);
    auto got = download(out, grid.x * grid.y * grid.z);
    Report report("workgroups");
    for (uint32_t i = 0; i < got.size(); ++i)
        report.equal(i, i % grid.x + 100 * (i / grid.x % grid.y) + 10000 * (i / grid.x / grid.y) + 1000000 * block.y, got[i]);
}

int main(int argc, char **argv) {
    start(argc, argv);
    scalar_floats<float>();
    scalar_floats<_Float16>();
    extremes<float>();
    extremes<double>();
    extremes<_Float16>();
    narrow_loads<uint8_t>();
    narrow_loads<int8_t>();
    narrow_loads<uint16_t>();
    narrow_loads<int16_t>();
    permutes();
    subtractions();
    split_barriers();
    grids();
    return finish();
}
