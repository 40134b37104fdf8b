// Operations across lanes: DPP, permutes, swizzles, votes and lane numbers, with all lanes active and with only some lanes
// active. The host computes the results lane by lane, as the guide's chapters on DPP and LDS permutes specify.
#include "check.h"

#include <utility>

constexpr int threads = 256;
constexpr uint32_t none = 0xdeadbeef;
// The expected result is undefined: the compiler may leave any value in a lane that is not active.
constexpr uint64_t undefined = 1ull << 32;

// A function of a lane's value and another number, for the device. The host only uses its type.
#ifdef __HIP_DEVICE_COMPILE__
#define LANE(...) [](uint32_t x, uint32_t y) __device__ __host__ -> uint32_t { __VA_ARGS__; }
#else
#define LANE(...) [](uint32_t, uint32_t) __device__ __host__ -> uint32_t { return 0; }
#endif

int lanes;

// A wave, on the host.
struct Wave {
    uint32_t in[64], index[64];
    bool active[64];
    bool valid(int lane) const { return lane >= 0 && lane < lanes && active[lane]; }
};

template <class F> __global__ void run(F f, uint32_t *out, const uint32_t *in, const uint32_t *index, uint64_t mask) {
    int i = threadIdx.x;
    uint32_t result = none, value = in[i], other = index[i];
    if (mask >> (i & 63) & 1)
        result = f(value, other);
    out[i] = result;
}

// Compares `f` on the device with `wanted(wave, lane)` on the host, with several masks of active lanes.
template <class F, class G> void check(const char *name, F f, G wanted) {
    if constexpr (on_host) {
        std::vector<uint32_t> in(threads), index(threads);
        for (int i = 0; i < threads; ++i) {
            in[i] = uint32_t(next_random());
            index[i] = uint32_t(next_random()) & 63;
        }
        uint32_t *device_in = upload(in), *device_index = upload(index), *out = upload(std::vector<uint32_t>(threads, 0x77));
        Report report(name);
        for (uint64_t mask : {~0ull, 0x5555555555555555ull, 0xfff0f0ff00ff3c17ull, uint64_t(next_random()) | 1ull << 35 | 2}) {
            run<<<1, threads>>>(f, out, device_in, device_index, mask);
            HIP(hipGetLastError());
            auto got = download(out, threads);
            for (int base = 0; base < threads; base += lanes) {
                Wave wave{};
                for (int i = 0; i < lanes; ++i) {
                    wave.in[i] = in[base + i];
                    wave.index[i] = index[base + i];
                    wave.active[i] = mask >> ((base + i) & 63) & 1;
                }
                for (int i = 0; i < lanes; ++i) {
                    uint64_t expected = wave.active[i] ? wanted(wave, i) : none;
                    if (expected != undefined && got[base + i] != expected)
                        report.differ(base + i, uint32_t(expected), got[base + i], in[base + i], index[base + i], mask);
                }
            }
        }
    } else {
        (void)&run<F>;
    }
}

// The lane that DPP16 reads, or -1.
int dpp_source(int control, int lane) {
    int row = lane & ~15, l = lane & 15, n = control & 15;
    switch (control >> 4) {
#ifdef GFX9
    // WAVE_SHL, WAVE_ROL, WAVE_SHR, WAVE_ROR.
    case 0x13: return n == 0   ? (lane < 63 ? lane + 1 : -1)
                    : n == 4 ? (lane + 1) % 64
                    : n == 8 ? lane - 1
                             : (lane + 63) % 64;
#endif
    case 0x10: return l + n < 16 ? lane + n : -1;
    case 0x11: return l - n >= 0 ? lane - n : -1;
    case 0x12: return row + ((l - n) & 15);
#ifdef GFX9
    // Also ROW_BCAST15 and ROW_BCAST31.
    case 0x14: return n == 0   ? row + 15 - l
                    : n == 1 ? (lane & ~7) + 7 - (lane & 7)
                    : n == 2 ? row - 1
                             : lane >= 32 ? 31 : -1;
#else
    case 0x14: return n == 0 ? row + 15 - l : (lane & ~7) + 7 - (lane & 7);
#endif
    case 0x15: return row + n;
    case 0x16: return row + (l ^ n);
    default: return (lane & ~3) + (control >> 2 * (lane & 3) & 3);
    }
}

template <int control, int row_mask, int bank_mask, bool bound_control> void dpp16() {
    char name[80];
    std::snprintf(name, sizeof name, "dpp %#x rows %#x banks %#x bound %d", control, row_mask, bank_mask, bound_control);
    check(
        name, LANE(return uint32_t(__builtin_amdgcn_update_dpp(int(y), int(x), control, row_mask, bank_mask, bound_control))),
        [](const Wave &wave, int lane) {
            int from = dpp_source(control, lane);
            bool written = row_mask >> (lane >> 4 & 3) & 1 && bank_mask >> (lane >> 2 & 3) & 1;
            if (!written)
                return wave.index[lane];
            if (wave.valid(from))
                return wave.in[from];
            return bound_control ? 0 : wave.index[lane];
        });
}

template <int... control> void dpp16_controls(std::integer_sequence<int, control...>) {
    (dpp16<control, 15, 15, false>(), ...);
    (dpp16<control, 15, 15, true>(), ...);
    (dpp16<control, 0xa, 15, false>(), ...);
    (dpp16<control, 15, 0x6, true>(), ...);
}

#ifndef GFX9
template <unsigned selectors> void dpp8() {
    check("dpp8", LANE(return __builtin_amdgcn_mov_dpp8(x, selectors)),
          [](const Wave &wave, int lane) {
              int from = (lane & ~7) + (selectors >> 3 * (lane & 7) & 7);
              return wave.valid(from) ? wave.in[from] : 0;
          });
}
#endif

template <int pattern> void swizzle() {
    char name[40];
    std::snprintf(name, sizeof name, "swizzle %#x", pattern);
    check(name, LANE(return uint32_t(__builtin_amdgcn_ds_swizzle(int(x), pattern))),
          [](const Wave &wave, int lane) {
              int from;
              if (pattern >= 0x8000)
                  from = (lane & ~3) + (pattern >> 2 * (lane & 3) & 3);
              else
                  from = (lane & ~31) + (((lane & 31 & (pattern & 31)) | (pattern >> 5 & 31)) ^ (pattern >> 10 & 31));
              return wave.valid(from) ? wave.in[from] : 0;
          });
}

#ifndef GFX9
// v_permlane16 and v_permlanex16: a lane reads a lane of its row, or of the other row of its half.
template <bool other_row, bool fetch_inactive, bool bound_control> void permlane() {
    constexpr uint32_t low = 0x76543210 ^ 0x31265075, high = 0xfedcba98 ^ 0x02040608;
    check(
        other_row ? "permlanex16" : "permlane16",
        LANE(if constexpr (other_row) return __builtin_amdgcn_permlanex16(y, x, low, high, fetch_inactive, bound_control);
                       else return __builtin_amdgcn_permlane16(y, x, low, high, fetch_inactive, bound_control)),
        [](const Wave &wave, int lane) -> uint64_t {
            uint64_t select = uint64_t(high) << 32 | low;
            int from = (lane & ~15 ^ (other_row ? 16 : 0)) + int(select >> 4 * (lane & 15) & 15);
            if (wave.valid(from))
                return wave.in[from];
            return fetch_inactive ? undefined : bound_control ? 0 : wave.index[lane];
        });
}

#endif

uint64_t mask_of(const Wave &wave, bool (*predicate)(uint32_t)) {
    uint64_t mask = 0;
    for (int i = 0; i < lanes; ++i)
        mask |= uint64_t(wave.active[i] && predicate(wave.in[i])) << i;
    return mask;
}

int first_of(const Wave &wave) {
    int i = 0;
    while (!wave.active[i])
        ++i;
    return i;
}

void votes() {
    auto odd = [](uint32_t x) { return (x & 1) != 0; };
    auto small = [](uint32_t x) { return x < 0x40000000; };
    check("ballot, low", LANE(return uint32_t(__ballot(x & 1))),
          [=](const Wave &wave, int) { return uint32_t(mask_of(wave, odd)); });
    check("ballot, high", LANE(return uint32_t(__ballot(x & 1) >> 32)),
          [=](const Wave &wave, int) { return uint32_t(mask_of(wave, odd) >> 32); });
    check("any and all", LANE(return uint32_t(!!__any(x < 0x40000000) | !!__all(x >= 0x40000000) << 1)),
          [=](const Wave &wave, int) {
              bool any = mask_of(wave, small) != 0;
              return uint32_t(any | !any << 1);
          });
    check("active lanes", LANE(return uint32_t(__popcll(__activemask()))),
          [](const Wave &wave, int) { return uint32_t(__builtin_popcountll(mask_of(wave, [](uint32_t) { return true; }))); });
    check("ballot in a branch", LANE(if (x & 1) return uint32_t(__ballot(x < 0x40000000)); return 1u;),
          [=](const Wave &wave, int lane) {
              return odd(wave.in[lane]) ? uint32_t(mask_of(wave, [](uint32_t x) { return (x & 1) && x < 0x40000000; })) : 1u;
          });
    check("lane number", LANE(return __lane_id()), [](const Wave &, int lane) { return uint32_t(lane); });
    check("bits below", LANE(return __builtin_amdgcn_mbcnt_hi(0x9249a5f7, __builtin_amdgcn_mbcnt_lo(0x1b35c6e9, 5))),
          [](const Wave &, int lane) {
              return 5 + uint32_t(__builtin_popcountll(0x9249a5f71b35c6e9ull & ((1ull << lane) - 1)));
          });
    check("first lane", LANE(return uint32_t(__builtin_amdgcn_readfirstlane(int(x)))),
          [](const Wave &wave, int) { return wave.in[first_of(wave)]; });
    check("read a lane", LANE(return uint32_t(__builtin_amdgcn_readlane(int(x), 6))),
          [](const Wave &wave, int) { return wave.active[6] ? wave.in[6] : undefined; });
    check("read a lane that is computed", LANE(return uint32_t(__builtin_amdgcn_readlane(int(x), __builtin_amdgcn_readfirstlane(int(y & 31))))),
          [](const Wave &wave, int) {
              int from = int(wave.index[first_of(wave)] & 31);
              return wave.active[from] ? wave.in[from] : undefined;
          });
}

// In wave64 of gfx11, each half is independent.
#ifdef GFX9
constexpr int group = 64;
#else
constexpr int group = 32;
#endif

void permutes() {
    check("bpermute", LANE(return uint32_t(__builtin_amdgcn_ds_bpermute(int(y * 4), int(x)))),
          [](const Wave &wave, int lane) {
              int from = (lane & ~(group - 1)) + int(wave.index[lane] & (group - 1));
              return wave.valid(from) ? wave.in[from] : 0;
          });
    // If several lanes send to one lane, it receives the value of the last one.
    check("permute", LANE(return uint32_t(__builtin_amdgcn_ds_permute(int(y * 4), int(x)))),
          [](const Wave &wave, int lane) {
              uint32_t value = 0;
              int first = lane & ~(group - 1);
              for (int from = first; from < first + group; ++from)
                  if (wave.valid(from) && (wave.index[from] & (group - 1)) == uint32_t(lane & (group - 1)))
                      value = wave.in[from];
              return value;
          });
#ifndef GFX9
    if (lanes == 64)
        check("permlane64", LANE(return __builtin_amdgcn_permlane64(x)),
              [](const Wave &wave, int lane) { return wave.active[lane ^ 32] ? wave.in[lane ^ 32] : undefined; });
#endif
}

__global__ void wave_size(int *out) { *out = warpSize; }

// With all lanes active.
template <class T> __global__ void shuffles(T *out, const T *in, const uint32_t *index) {
    int i = threadIdx.x;
    T x = in[i], *o = out + 8 * i;
    o[0] = __shfl(x, int(index[i] & 31), 32);
    o[1] = __shfl_up(x, 3, 16);
    o[2] = __shfl_down(x, 5, 32);
    o[3] = __shfl_xor(x, 13, 32);
    o[4] = __shfl(x, 2, 4);
    o[5] = __shfl_xor(x, 1);
    o[6] = __shfl_up(x, 1, 8);
    o[7] = __shfl_down(x, 1, 2);
}

template <class T> void shuffles_of() {
    std::vector<T> in(threads);
    std::vector<uint32_t> index(threads);
    for (int i = 0; i < threads; ++i) {
        in[i] = any<T>();
        if (in[i] != in[i])
            in[i] = T(i);
        index[i] = uint32_t(next_random());
    }
    T *out = upload(std::vector<T>(8 * threads));
    shuffles<<<1, threads>>>(out, upload(in), upload(index));
    auto got = download(out, 8 * threads);
    Report report("shuffles");
    for (int i = 0; i < threads; ++i) {
        int from[] = {(i & ~31) + int(index[i] & 31),
                      (i & 15) >= 3 ? i - 3 : i,
                      (i & 31) + 5 < 32 ? i + 5 : i,
                      i ^ 13,
                      (i & ~3) + 2,
                      i ^ 1,
                      (i & 7) >= 1 ? i - 1 : i,
                      (i & 1) == 0 ? i + 1 : i};
        for (int k = 0; k < 8; ++k)
            report.equal(8 * i + k, in[from[k]], got[8 * i + k]);
    }
}

int main(int argc, char **argv) {
    start(argc, argv);
    int *size = upload(std::vector<int>(1));
    wave_size<<<1, 1>>>(size);
    lanes = download(size, 1)[0];
    dpp16_controls(std::integer_sequence<int, 0x00, 0x1b, 0xb1, 0xe4, 0x4e, 0x93, 0x101, 0x104, 0x10f, 0x111, 0x116, 0x11f,
                                         0x121, 0x127, 0x12f, 0x140, 0x141, 0x150, 0x157, 0x15f>());
#ifdef GFX9
    dpp16_controls(std::integer_sequence<int, 0x130, 0x134, 0x138, 0x13c, 0x142, 0x143>());
#else
    dpp16_controls(std::integer_sequence<int, 0x161, 0x165, 0x16f>());
    dpp8<076543210>();
    dpp8<001234567>();
    dpp8<000000000>();
    dpp8<035172640>();
#endif
    swizzle<0x001f>();
    swizzle<0x041f>();
    swizzle<0x7c1f>();
    swizzle<0x0018>();
    swizzle<0x00f0>();
    swizzle<0x2a75>();
    swizzle<0x8000 | 0x1b>();
    swizzle<0x8000 | 0x4e>();
#ifndef GFX9
    permlane<false, false, false>();
    permlane<false, false, true>();
    permlane<false, true, false>();
    permlane<true, false, false>();
    permlane<true, false, true>();
    permlane<true, true, false>();
#endif
    votes();
    permutes();
    shuffles_of<int>();
    shuffles_of<float>();
    shuffles_of<uint64_t>();
    shuffles_of<double>();
    return finish();
}
