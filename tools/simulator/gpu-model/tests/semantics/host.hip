// Operations that HIP implements with its own kernels: copies and fills with odd sizes and offsets. Launches:
// three-dimensional grids with partial workgroups, and several streams at once.
//
// ROCr's model mode cannot pin user memory. So copies for which HIP would pin it (asynchronous ones and rectangles) use
// memory of hipHostMalloc, or are between device addresses.
#include "check.h"

#include <hip/hip_ext.h>

std::vector<uint8_t> random_bytes(size_t n) {
    std::vector<uint8_t> bytes(n);
    for (auto &byte : bytes)
        byte = uint8_t(next_random());
    return bytes;
}

void expect(Report &report, const std::vector<uint8_t> &expected, const uint8_t *memory) {
    auto got = download(memory, expected.size());
    for (size_t i = 0; i < expected.size(); ++i)
        report.equal(i, expected[i], got[i]);
}

void test_copies() {
    Report report("copies");
    const size_t size = 300000;
    auto a = random_bytes(size), b = random_bytes(size);
    uint8_t *x = upload(a), *y = upload(b);
    for (size_t length : {1, 2, 3, 5, 8, 15, 16, 17, 31, 63, 64, 65, 255, 1000, 4095, 4097, 65537, 200003}) {
        size_t from = next_random() % (size - length), to = next_random() % (size - length);
        HIP(hipMemcpy(y + to, x + from, length, hipMemcpyDeviceToDevice));
        std::memcpy(&b[to], &a[from], length);
        from = next_random() % (size - length), to = next_random() % (size - length);
        HIP(hipMemcpy(x + to, &b[from], length, hipMemcpyHostToDevice));
        std::memcpy(&a[to], &b[from], length);
        std::vector<uint8_t> part(length);
        HIP(hipMemcpy(part.data(), y + to, length, hipMemcpyDeviceToHost));
        for (size_t i = 0; i < length; ++i)
            report.equal(i, b[to + i], part[i]);
    }
    expect(report, a, x);
    expect(report, b, y);
    // Rectangles.
    HIP(hipMemcpy2D(y + 5, 301, x + 11, 203, 97, 83, hipMemcpyDeviceToDevice));
    for (int row = 0; row < 83; ++row)
        std::memcpy(&b[5 + row * 301], &a[11 + row * 203], 97);
    expect(report, a, x);
    expect(report, b, y);
}

void test_fills() {
    Report report("fills");
    const size_t size = 100000;
    auto a = random_bytes(size);
    uint8_t *x = upload(a);
    for (size_t length : {1, 2, 3, 7, 8, 13, 16, 33, 127, 1001, 4099, 50021}) {
        size_t at = next_random() % (size - length);
        int value = int(next_random() & 255);
        HIP(hipMemset(x + at, value, length));
        std::memset(&a[at], value, length);
    }
    expect(report, a, x);
    HIP(hipMemsetD16(reinterpret_cast<hipDeviceptr_t>(x + 102), 0xbeef, 333));
    HIP(hipMemsetD32(reinterpret_cast<hipDeviceptr_t>(x + 2004), int(0xdeadbeef), 77));
    HIP(hipMemset2D(x + 30001, 107, 0x3c, 41, 50));
    for (int i = 0; i < 333; ++i)
        a[102 + 2 * i] = 0xef, a[103 + 2 * i] = 0xbe;
    for (int i = 0; i < 77; ++i) {
        uint32_t word = 0xdeadbeef;
        std::memcpy(&a[2004 + 4 * i], &word, 4);
    }
    for (int row = 0; row < 50; ++row)
        std::memset(&a[30001 + row * 107], 0x3c, 41);
    expect(report, a, x);
}

// Stores a hash of all ids and sizes that a work-item can read.
__global__ void hash_ids(uint64_t *out, dim3 limit) {
    uint32_t x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y,
             z = blockIdx.z * blockDim.z + threadIdx.z;
    if (x >= limit.x || y >= limit.y || z >= limit.z)
        return;
    uint64_t hash = x;
    for (uint32_t part : {y, z, threadIdx.x, threadIdx.y, threadIdx.z, blockIdx.x, blockIdx.y, blockIdx.z, blockDim.x,
                          blockDim.y, blockDim.z, gridDim.x, gridDim.y, gridDim.z})
        hash = hash * 1000003 + part;
    out[(z * limit.y + y) * limit.x + x] += hash;
}

void test_grid(dim3 limit, dim3 block) {
    char name[80];
    std::snprintf(name, sizeof name, "grid %ux%ux%u by %ux%ux%u", limit.x, limit.y, limit.z, block.x, block.y, block.z);
    Report report(name);
    dim3 grid((limit.x + block.x - 1) / block.x, (limit.y + block.y - 1) / block.y, (limit.z + block.z - 1) / block.z);
    std::vector<uint64_t> zero(limit.x * limit.y * limit.z);
    uint64_t *out = upload(zero);
    hash_ids<<<grid, block>>>(out, limit);
    HIP(hipGetLastError());
    auto got = download(out, zero.size());
    for (uint32_t z = 0; z < limit.z; ++z)
        for (uint32_t y = 0; y < limit.y; ++y)
            for (uint32_t x = 0; x < limit.x; ++x) {
                uint64_t hash = x;
                for (uint32_t part : {y, z, x % block.x, y % block.y, z % block.z, x / block.x, y / block.y, z / block.z, block.x,
                                      block.y, block.z, grid.x, grid.y, grid.z})
                    hash = hash * 1000003 + part;
                size_t i = (z * limit.y + y) * limit.x + x;
                report.equal(i, hash, got[i]);
            }
}

__global__ void step(uint32_t *values, int n, uint32_t factor, uint32_t term) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
        values[i] = values[i] * factor + term;
}

// Each stream has its own sequence of kernels and copies. Different streams are not ordered.
void test_streams() {
    Report report("streams");
    constexpr int streams = 6, n = 1500;
    hipStream_t stream[streams];
    uint32_t *device[streams], *spare[streams];
    uint32_t *results[streams];
    std::vector<uint32_t> values[streams];
    for (int s = 0; s < streams; ++s) {
        HIP(hipStreamCreateWithFlags(&stream[s], s % 2 ? hipStreamNonBlocking : hipStreamDefault));
        values[s].resize(n);
        for (auto &value : values[s])
            value = uint32_t(next_random());
        HIP(hipHostMalloc(&results[s], n * 4));
        device[s] = upload(values[s]);
        spare[s] = upload(values[s]);
    }
    for (uint32_t round = 0; round < 10; ++round)
        for (int s = 0; s < streams; ++s) {
            step<<<3, 96, 0, stream[s]>>>(device[s], n, 2 * s + 3, round);
            HIP(hipMemcpyAsync(spare[s], device[s], n * 4, hipMemcpyDeviceToDevice, stream[s]));
            step<<<2, 64, 0, stream[s]>>>(spare[s], n, 5, s);
            HIP(hipMemcpyAsync(device[s] + 7, spare[s] + 3, 1001 * 4, hipMemcpyDeviceToDevice, stream[s]));
        }
    for (int s = 0; s < streams; ++s)
        HIP(hipMemcpyAsync(results[s], device[s], n * 4, hipMemcpyDeviceToHost, stream[s]));
    for (int s = 0; s < streams; ++s) {
        HIP(hipStreamSynchronize(stream[s]));
        auto &expected = values[s];
        for (uint32_t round = 0; round < 10; ++round) {
            for (auto &value : expected)
                value = value * (2 * s + 3) + round;
            auto other = expected;
            for (auto &value : other)
                value = value * 5 + s;
            std::copy(other.begin() + 3, other.begin() + 1004, expected.begin() + 7);
        }
        for (int i = 0; i < n; ++i)
            report.equal(i, expected[i], results[s][i]);
        HIP(hipStreamDestroy(stream[s]));
    }
}

// A copy of more bytes than one of HIP's staging buffers holds.
void test_large_copy() {
    Report report("a large copy");
    const size_t size = (5 << 20) + 13;
    auto from = random_bytes(size);
    uint8_t *x = upload(from), *y = upload(std::vector<uint8_t>(size));
    HIP(hipMemcpy(y + 1, x + 3, size - 5, hipMemcpyDeviceToDevice));
    auto got = download(y, size);
    for (size_t i = 0; i < size; ++i)
        report.equal(i, i == 0 || i > size - 5 ? uint8_t(0) : from[i + 2], got[i]);
}

__global__ void sizes(unsigned *out) {
    if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0)
        out[blockIdx.y * gridDim.x + blockIdx.x] = blockDim.x + 100 * blockDim.y + 10000 * blockDim.z;
}

// A grid that is not a multiple of the workgroup's size.
void test_partial_workgroups() {
    Report report("partial workgroups");
    hipFunction_t function;
    HIP(hipGetFuncBySymbol(&function, reinterpret_cast<const void *>(sizes)));
    unsigned *out = upload(std::vector<unsigned>(4));
    void *arguments[] = {&out};
    HIP(hipExtModuleLaunchKernel(function, 7, 6, 3, 4, 4, 3, 0, nullptr, arguments, nullptr));
    auto got = download(out, 4);
    const unsigned expected[] = {30404, 30403, 30204, 30203};
    for (int i = 0; i < 4; ++i)
        report.equal(i, expected[i], got[i]);
}

__constant__ uint32_t constants[16];
__device__ uint32_t variable[4];

__global__ void symbols(uint32_t *out) {
    out[threadIdx.x] = constants[threadIdx.x & 15] + variable[threadIdx.x & 3];
    if (threadIdx.x == 0)
        variable[0] = 99;
}

void test_symbols() {
    Report report("symbols");
    auto values = inputs<uint32_t>();
    HIP(hipMemcpyToSymbol(HIP_SYMBOL(constants), values.data(), sizeof constants));
    HIP(hipMemcpyToSymbol(HIP_SYMBOL(variable), &values[16], sizeof variable));
    uint32_t *out = upload(std::vector<uint32_t>(32));
    symbols<<<1, 32>>>(out);
    auto got = download(out, 32);
    for (int i = 0; i < 32; ++i)
        report.equal(i, values[i & 15] + values[16 + (i & 3)], got[i]);
    uint32_t back[4];
    HIP(hipMemcpyFromSymbol(back, HIP_SYMBOL(variable), sizeof back));
    report.equal(0, 99u, back[0]);
}

int main(int argc, char **argv) {
    start(argc, argv);
    test_large_copy();
    test_partial_workgroups();
    test_symbols();
    test_copies();
    test_fills();
    test_grid({100, 1, 1}, {64, 1, 1});
    test_grid({1, 77, 1}, {1, 32, 1});
    test_grid({1, 1, 50}, {1, 1, 33});
    test_grid({37, 21, 9}, {8, 4, 3});
    test_grid({10, 10, 10}, {5, 7, 11});
    test_grid({70, 3, 2}, {1024, 1, 1});
    test_grid({19, 23, 5}, {17, 1, 2});
    test_streams();
    return finish();
}
