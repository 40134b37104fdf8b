// Operations across lanes, and divergence: shuffles, votes, divergent loops, three-dimensional grids with partial
// workgroups.
#include "check.h"
#include <hip/hip_ext.h>

__global__ void wave_size(int *out) { *out = warpSize; }

__global__ void cross(int *out, unsigned long long *ballots, const int *in) {
    int t = threadIdx.x, value = in[t];
    int *o = out + 8 * t;
    o[0] = __shfl(value, ((t * 5) & 31) | (t & 32));
    o[1] = __shfl_down(value, 3, 32);
    o[2] = __shfl_up(value, 2, 32);
    o[3] = __shfl_xor(value, 9);
    o[4] = __any(value > 990);
    o[5] = __all(value < 1000);
    o[6] = __lane_id();
    o[7] = __builtin_amdgcn_readfirstlane(value);
    ballots[t] = __ballot(value & 1);
}

// On gfx11, a lane of a wave64 can only read lanes of its own half. So the expected results of shuffles are those of 32
// lanes for both wave sizes. The expected results of votes are those of the wave.
void test_cross(int size) {
    const int threads = 128;
    std::vector<int> in(threads);
    for (auto &value : in)
        value = random_bits() % 1000;
    Device<int> device_in(in), out(8 * threads);
    Device<unsigned long long> ballots(threads);
    cross<<<1, threads>>>(out, ballots, device_in);
    auto got = out.host();
    auto got_ballots = ballots.host();
    for (int t = 0; t < threads; t++) {
        int half = t & ~31, lane = t & 31, wave = t / size * size;
        EXPECT_EQ(got[8 * t], in[half + (t * 5 & 31)], t);
        EXPECT_EQ(got[8 * t + 1], in[lane + 3 < 32 ? t + 3 : t], t);
        EXPECT_EQ(got[8 * t + 2], in[lane >= 2 ? t - 2 : t], t);
        EXPECT_EQ(got[8 * t + 3], in[half + (lane ^ 9)], t);
        int any = 0, all = 1;
        unsigned long long mask = 0;
        for (int k = 0; k < size; k++) {
            mask |= (unsigned long long)(in[wave + k] & 1) << k;
            any |= in[wave + k] > 990;
            all &= in[wave + k] < 1000;
        }
        EXPECT_EQ(got[8 * t + 4] != 0, any, t);
        EXPECT_EQ(got[8 * t + 5] != 0, all, t);
        EXPECT_EQ(got[8 * t + 6], t % size, t);
        EXPECT_EQ(got[8 * t + 7], in[wave], t);
        EXPECT_EQ(got_ballots[t], mask, t);
    }
}

__host__ __device__ int winding(int value) {
    int sum = 0;
    for (int i = 0; i < (value & 15); i++) {
        if (value >> i & 1)
            sum += i;
        else {
            if (sum > 20)
                break;
            sum += value % 7;
        }
        switch ((unsigned)(value + i) % 5) {
        case 0:
            sum += 1;
            break;
        case 1:
            sum ^= 3;
            break;
        case 2:
            continue;
        case 3:
            sum -= 2;
            [[fallthrough]];
        default:
            sum *= 2;
        }
    }
    return sum;
}

__global__ void divergent(int *out, const int *in) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    out[t] = winding(in[t]);
}

void test_divergence() {
    const int count = 4096;
    auto in = random_integers<int>(count);
    for (auto &value : in)
        value = (unsigned)value >> 2;
    Device<int> device_in(in), out(count);
    divergent<<<count / 256, 256>>>(out, device_in);
    auto got = out.host();
    for (int t = 0; t < count; t++)
        EXPECT_EQ(got[t], winding(in[t]), t);
}

// clang combines these operations into one atomic operation per wave, with mbcnt, readlane and DPP.
__global__ void combined(int *out) {
    int ticket = atomicAdd(out, 1);
    atomicAdd(out + 8 + ticket, 1);
    if (threadIdx.x & 1)
        atomicAdd(out + 1, (int)threadIdx.x);
    atomicMax(out + 2, (int)threadIdx.x);
    atomicXor(out + 3, (int)threadIdx.x * 77);
}

void test_combined_atomics() {
    Device<int> out(8 + 300);
    combined<<<3, 100>>>(out);
    auto got = out.host();
    int parity = 0;
    for (int t = 0; t < 100; t++)
        parity ^= t * 77;
    EXPECT_EQ(got[0], 300, 0);
    EXPECT_EQ(got[1], 7500, 1);
    EXPECT_EQ(got[2], 99, 2);
    EXPECT_EQ(got[3], parity, 3);
    for (int t = 0; t < 300; t++)
        EXPECT_EQ(got[8 + t], 1, t);
}

__global__ void volume(int *out, int X, int Y, int Z) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    int z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x < X && y < Y && z < Z)
        atomicAdd(&out[(z * Y + y) * X + x], 1 + x + 10 * y + 100 * z + 1000 * (int)(gridDim.x + 7 * gridDim.y + 49 * gridDim.z));
}

__global__ void sizes(int *out) {
    if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0)
        out[(blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x] =
            blockDim.x + 100 * blockDim.y + 10000 * blockDim.z;
}

void test_grids() {
    const int X = 13, Y = 9, Z = 5;
    Device<int> out(X * Y * Z);
    volume<<<dim3(4, 3, 2), dim3(4, 4, 3)>>>(out, X, Y, Z);
    auto got = out.host();
    for (int i = 0; i < X * Y * Z; i++)
        EXPECT_EQ(got[i], 1 + i % X + 10 * (i / X % Y) + 100 * (i / X / Y) + 1000 * (4 + 21 + 98), i);
    // A grid that is not a multiple of the workgroup's size.
    hipFunction_t function;
    HIP(hipGetFuncBySymbol(&function, (const void *)sizes));
    Device<int> blocks(2 * 2 * 1);
    int *pointer = blocks;
    void *arguments[] = {&pointer};
    HIP(hipExtModuleLaunchKernel(function, 7, 6, 3, 4, 4, 3, 0, nullptr, arguments, nullptr));
    HIP(hipDeviceSynchronize());
    got = blocks.host();
    const int wanted[] = {30404, 30403, 30204, 30203};
    for (int i = 0; i < 4; i++)
        EXPECT_EQ(got[i], wanted[i], i);
}

int main() {
    Device<int> size(1);
    wave_size<<<1, 1>>>(size);
    test_cross(size.host()[0]);
    test_divergence();
    test_combined_atomics();
    test_grids();
    return finish();
}
