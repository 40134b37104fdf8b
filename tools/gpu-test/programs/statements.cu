// Every kind of statement that clang counts. `results` is computed from what the device wrote, so that an optimizer that
// breaks the program is noticed, too.
//
// VARIANTS: O0 O1 O2 O3 O2+rdc
// 128 threads, i = 0 … 127.
// CHECK: sm_90.default.profraw: _Z11conditionalPi: [128, 64, 43, 22, 64, 22, 73, 64, 55]
// CHECK: sm_90.default.profraw: _Z4joinPi: [128, 112, 1]
// CHECK: sm_90.default.profraw: _Z5loopsPi: [128, 379, 448, 96, 32]
// CHECK: sm_90.default.profraw: _Z6selectPi: [128, 128, 16, 16, 16, 16, 64]
#include "check.h"

// Multiples of 2: 64, of 3: 43, of both: 22; i < 64 or a multiple of 7 from 70 to 126: 64 + 9. The operands of && and
// || have counters, too: how often the right one is evaluated, and how often it then decides.
__global__ void conditional(int *out) {
    int i = threadIdx.x, value;
    if (i % 2 == 0)
        value = i;
    else
        value = -i;
    value += i % 3 == 0 ? 1 : 2;
    if (i % 2 == 0 && i % 3 == 0)
        value += 10;
    if (i < 64 || i % 7 == 0)
        value += 100;
    out[i] = value;
}

// The loops' bodies. for: 18 times 0 + … + 6, and 0 + 1. while: 16 times 0 + … + 7. do: each thread has n = 0, and i % 4
// rounds, but at least one: 32 times 1 + 1 + 2 + 3 (the last one ends with break); the counter is without the first
// round.
__global__ void loops(int *out) {
    int i = threadIdx.x, sum = 0;
    for (int k = 0; k < i % 7; k++)
        sum += k;
    int n = i % 8;
    while (n > 0) {
        sum += n;
        n--;
    }
    do {
        sum++;
        n++;
        if (n == 3)
            break;
    } while (n < i % 4);
    out[i] = sum;
}

// Threads that leave early, and those that go on.
__global__ void join(int *out) {
    int i = threadIdx.x;
    if (i >= 16) {
        out[i] = 0;
        return;
    }
    if (i == 15)
        out[i] = 1;
}

// The second counter is the end of the switch statement.
__global__ void select(int *out) {
    int i = threadIdx.x, value = 0;
    switch (i % 8) {
    case 0:
    case 1:
        value = 5;
        break;
    case 2:
        value = 7;
        [[fallthrough]];
    case 3:
        value += 8;
        break;
    default:
        value = 9;
    }
    out[i] = value;
}

// The same on the host, from which the results are taken.
static void expect(const int *device, int (*value)(int)) {
    int host[128];
    CHECK(cudaMemcpy(host, device, sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 128; i++)
        EXPECT(host[i] == value(i));
}

int main() {
    int *out = device_ints(128);
    conditional<<<1, 128>>>(out);
    expect(out, [](int i) {
        return (i % 2 ? -i : i) + (i % 3 ? 2 : 1) + (i % 6 ? 0 : 10) + (i < 64 || i % 7 == 0 ? 100 : 0);
    });
    loops<<<1, 128>>>(out);
    expect(out, [](int i) {
        int triangle = i % 7 * (i % 7 - 1) / 2, n = i % 8;
        return triangle + n * (n + 1) / 2 + (i % 4 > 1 ? i % 4 : 1);
    });
    join<<<1, 128>>>(out);
    select<<<1, 128>>>(out);
    CHECK(cudaDeviceSynchronize());
}
