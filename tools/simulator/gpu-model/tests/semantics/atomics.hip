// 32-bit and 64-bit atomic operations on global memory, on LDS, and through generic pointers.
#include "check.h"

enum Op { Add, Sub, And, Or, Xor, Min, Max, Exchange, CompareSwap, Load, Store, ops };

const char *const names[] = {"add", "sub", "and", "or", "xor", "min", "max", "exchange", "compare and swap", "load", "store"};

// The operation on the device. Returns the old value.
template <class T> __device__ T perform(int op, T *p, T value, T expected) {
    constexpr int order = __ATOMIC_SEQ_CST, scope = __HIP_MEMORY_SCOPE_AGENT;
    switch (op) {
    case Add: return __hip_atomic_fetch_add(p, value, order, scope);
    case Sub: return __hip_atomic_fetch_add(p, T(0) - value, order, scope);
    case Min: return __hip_atomic_fetch_min(p, value, order, scope);
    case Max: return __hip_atomic_fetch_max(p, value, order, scope);
    case Exchange: return __hip_atomic_exchange(p, value, order, scope);
    case CompareSwap: __hip_atomic_compare_exchange_strong(p, &expected, value, order, order, scope); return expected;
    case Load: return __hip_atomic_load(p, order, scope);
    case Store: {
        T old = *p;
        __hip_atomic_store(p, value, order, scope);
        return old;
    }
    }
    if constexpr (!is_float<T>) {
        switch (op) {
        case And: return __hip_atomic_fetch_and(p, value, order, scope);
        case Or: return __hip_atomic_fetch_or(p, value, order, scope);
        case Xor: return __hip_atomic_fetch_xor(p, value, order, scope);
        }
    }
    return value;
}

// The same operation on a host variable.
template <class T> T simulate(int op, T &variable, T value, T expected) {
    T old = variable;
    switch (op) {
    case Add: variable = T(old + value); break;
    case Sub: variable = T(old + (T(0) - value)); break;
    case Min: variable = value < old ? value : old; break;
    case Max: variable = value > old ? value : old; break;
    case Exchange:
    case Store: variable = value; break;
    case CompareSwap:
        if (same(old, expected))
            variable = value;
        break;
    case Load: break;
    }
    if constexpr (!is_float<T>) {
        switch (op) {
        case And: variable = old & value; break;
        case Or: variable = old | value; break;
        case Xor: variable = old ^ value; break;
        }
    }
    return old;
}

constexpr int threads = 192;

enum Space { Global, Lds, Either };

// Each lane has its own element.
template <int op, Space space, class T>
__global__ void own_cells(T *cells, T *old, const T *values, const T *expected, int which) {
    __shared__ T shared[threads];
    int i = threadIdx.x, g = blockIdx.x * threads + i;
    if (space != Global) {
        shared[i] = cells[g];
        __syncthreads();
    }
    T *p = space == Global ? cells + g : space == Lds ? shared + i : (g + which) % 3 ? cells + g : shared + i;
    old[g] = perform(op, p, values[g], expected[g]);
    if (space == Lds || (space == Either && (g + which) % 3 == 0))
        cells[g] = shared[i];
}

// All lanes share one element, and the old value is not used.
template <int op, Space space, class T> __global__ void one_cell(T *cell, const T *values) {
    __shared__ T shared;
    int i = threadIdx.x, g = blockIdx.x * threads + i;
    if (space != Global) {
        if (i == 0)
            shared = *cell;
        __syncthreads();
        perform(op, space == Lds ? &shared : values[0] == values[1] ? cell : &shared, values[g], T(0));
        __syncthreads();
        if (i == 0)
            *cell = shared;
    } else {
        perform(op, cell, values[g], T(0));
    }
}

// Numbers whose sums are exact, so that the order does not matter.
template <class T> std::vector<T> values(size_t n) {
    std::vector<T> list(n);
    for (auto &value : list)
        value = is_float<T> ? T(int(next_random() % 2000) - 1000) : any<T>();
    return list;
}

// The kernels of one operation. `shared` is null if the order of the operations matters.
template <class T> struct Kernels {
    void (*own)(T *cells, T *old, const T *values, const T *expected, int which);
    void (*shared)(T *cell, const T *values);
};

template <class T> void test_op(int op, Space space, Kernels<T> kernels) {
    const char *const spaces[] = {"global", "LDS", "flat"};
    char name[60];
    std::snprintf(name, sizeof name, "%s of %zu bytes, %s", names[op], sizeof(T), spaces[space]);
    Report report(name);
    size_t n = 4 * threads;
    auto cells = values<T>(n), operands = values<T>(n), expected = values<T>(n);
    for (size_t i = 0; i < n; i += 2)
        expected[i] = cells[i];
    T *device_cells = upload(cells), *old = upload(operands);
    kernels.own<<<4, threads>>>(device_cells, old, upload(operands), upload(expected), 1);
    HIP(hipGetLastError());
    auto got_cells = download(device_cells, n), got_old = download(old, n);
    for (size_t i = 0; i < n; ++i) {
        T variable = cells[i], before = simulate(op, variable, operands[i], expected[i]);
        report.equal(i, variable, got_cells[i], cells[i], operands[i], expected[i]);
        report.equal(i, before, got_old[i], cells[i], operands[i], expected[i]);
    }
    if (kernels.shared) {
        size_t groups = space == Global ? 4 : 1;
        operands[1] = operands[0] == T(0) ? T(1) : T(0);
        T *cell = upload(std::vector<T>{cells[0]});
        kernels.shared<<<groups, threads>>>(cell, upload(operands));
        T variable = cells[0], got = download(cell, 1)[0];
        for (size_t i = 0; i < groups * threads; ++i)
            simulate(op, variable, operands[i], T(0));
        report.equal(0, variable, got);
    }
}

template <class T, int op, Space space> void test_space() {
    Kernels<T> kernels{};
    kernels.own = own_cells<op, space>;
    if constexpr (op <= Max)
        kernels.shared = one_cell<op, space>;
    if constexpr (on_host)
        test_op(op, space, kernels);
}

template <class T, int op> void test_spaces() {
    if constexpr (!is_float<T> || (op != And && op != Or && op != Xor)) {
        test_space<T, op, Global>();
        test_space<T, op, Lds>();
        test_space<T, op, Either>();
    }
}

template <class T> void test() {
    test_spaces<T, Add>();
    test_spaces<T, Sub>();
    test_spaces<T, And>();
    test_spaces<T, Or>();
    test_spaces<T, Xor>();
    test_spaces<T, Min>();
    test_spaces<T, Max>();
    test_spaces<T, Exchange>();
    test_spaces<T, CompareSwap>();
    test_spaces<T, Load>();
    test_spaces<T, Store>();
}

// Each ticket is drawn once. Each exchange returns the value of the previous one. A compare-and-swap lock excludes other
// threads.
__global__ void tickets(uint32_t *next, uint32_t *seen, uint64_t *chain, uint64_t *before, uint32_t *lock, uint32_t *count,
                        uint32_t *wrapped) {
    uint32_t g = blockIdx.x * blockDim.x + threadIdx.x;
    if (g % 3)
        atomicAdd(&seen[atomicAdd(next, 1u)], 1u);
    before[g] = atomicExch((unsigned long long *)chain, (unsigned long long)(g + 1));
    // Only one lane per workgroup takes the lock: lanes of one wave that wait for each other may not make progress.
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0u, 1u) != 0)
            ;
        *(volatile uint32_t *)count += 1;
        __threadfence();
        atomicExch(lock, 0u);
    }
    atomicInc(wrapped, 6u);
    atomicDec(wrapped + 1, 9u);
    // For all that clang knows, this pointer may be one to LDS.
    __shared__ uint32_t unused[2];
    uint32_t *flat = lock == next ? unused : wrapped + 2;
    atomicInc(flat, 6u);
    atomicDec(flat + 1, 9u);
}

void test_tickets() {
    Report report("tickets");
    uint32_t n = 5 * 160, taken = n - (n + 2) / 3;
    uint32_t *next = upload(std::vector<uint32_t>(1)), *seen = upload(std::vector<uint32_t>(n));
    uint64_t *chain = upload(std::vector<uint64_t>(1)), *before = upload(std::vector<uint64_t>(n));
    uint32_t *lock = upload(std::vector<uint32_t>(1)), *guarded = upload(std::vector<uint32_t>(1)), *wrapped = upload(std::vector<uint32_t>(4));
    tickets<<<5, 160>>>(next, seen, chain, before, lock, guarded, wrapped);
    auto got = download(seen, n);
    for (uint32_t i = 0; i < n; ++i)
        if (got[i] != (i < taken))
            report.differ(i, uint32_t(i < taken), got[i]);
    // Each value has been returned once, except the last one, which is still in memory.
    auto found = download(before, n);
    found.push_back(download(chain, 1)[0]);
    std::sort(found.begin(), found.end());
    for (uint64_t i = 0; i <= n; ++i)
        report.equal(i, i, found[i]);
    uint32_t value = download(guarded, 1)[0];
    if (value != 5)
        report.differ(0, 5u, value);
    uint32_t up = 0, down = 0;
    for (uint32_t i = 0; i < n; ++i) {
        up = up >= 6 ? 0 : up + 1;
        down = down == 0 || down > 9 ? 9 : down - 1;
    }
    auto wraps = download(wrapped, 4);
    for (uint32_t i = 0; i < 4; ++i)
        report.equal(i, i % 2 ? down : up, wraps[i]);
}

int main(int argc, char **argv) {
    start(argc, argv);
    test<int32_t>();
    test<uint32_t>();
    test<int64_t>();
    test<uint64_t>();
    test<float>();
    test<double>();
    test_tickets();
    return finish();
}
