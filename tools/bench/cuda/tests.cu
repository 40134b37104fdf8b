// tests TESTS MS: the cost of attribution to tests. Each test launches one of eight kernels for MS milliseconds. Prints the mean times
// of devprof_test, if devprof is loaded, when a test begins and when it ends.
#include "measure.h"
#include <chrono>
#include <string>

extern "C" __attribute__((weak)) int devprof_test(const char *name);

template <int N> __global__ void kernel(int *out, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (n % 2)
        out[i] += N;
    else
        for (int k = 0; k < n; k++)
            out[i] = out[i] * N + k;
}

static double now() {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

static void begin_test(const char *name) {
    if (devprof_test)
        CHECK(devprof_test(name));
}

int main(int, char **arguments) {
    int tests = atoi(arguments[1]);
    double length = atof(arguments[2]), begin = 0, end = 0;
    void (*kernels[])(int *, int) = {kernel<1>, kernel<2>, kernel<3>, kernel<4>, kernel<5>, kernel<6>, kernel<7>, kernel<8>};
    int *out = copy_of(std::vector<int>(64 * 256));
    kernels[0]<<<1, 64>>>(out, 0);
    CHECK(cudaDeviceSynchronize());
    double start = now();
    for (int test = 0; test < tests; test++) {
        double before = now();
        begin_test(("Suite.test_" + std::to_string(test)).c_str());
        double begun = now();
        for (int launch = 1; now() - begun < length; launch++) {
            kernels[test % 8]<<<64, 256>>>(out, test % 7 + 1);
            if (launch % 16 == 0)
                CHECK(cudaDeviceSynchronize());
        }
        CHECK(cudaDeviceSynchronize());
        double ended = now();
        begin_test(nullptr);
        begin += begun - before;
        end += now() - ended;
    }
    printf("%d tests of %g ms: %.0f ms; %.3f ms when one begins, %.3f ms when it ends\n", tests, length, now() - start, begin / tests,
           end / tests);
}
