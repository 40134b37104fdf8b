// Usage: modules CUBIN COUNT. Loads a module COUNT times, and collects. Prints the times of the start of CUDA, of the
// collect calls (the first, and the median of the others) and of a launch.
#include "measure.h"
#include <cuda.h>
#include <dlfcn.h>
#include <time.h>

static double now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

int main(int, char **argv) {
    int count = atoi(argv[2]), items = 1000, *out;
    double begin = now();
    CHECK(cudaFree(nullptr));
    double start = now() - begin;
    CHECK(cudaMalloc(&out, 4096));
    void *arguments[] = {&out, &items};
    CUfunction function;
    for (int n = 0; n < count; n++) {
        CUmodule module;
        CHECK(cuModuleLoad(&module, argv[1]));
        CHECK(cuModuleGetFunction(&function, module, "counted"));
        CHECK(cuLaunchKernel(function, 4, 1, 1, 256, 1, 1, 0, nullptr, arguments, nullptr));
    }
    CHECK(cudaDeviceSynchronize());
    std::vector<double> drains;
    if (auto collect = (int (*)())dlsym(RTLD_DEFAULT, "__llvm_profile_hip_collect_device_data"))
        for (int n = 0; n < 12; n++) {
            // A kernel counts between two drains.
            CHECK(cuLaunchKernel(function, 4, 1, 1, 256, 1, 1, 0, nullptr, arguments, nullptr));
            CHECK(cudaDeviceSynchronize());
            double from = now();
            collect();
            drains.push_back(now() - from);
        }
    std::vector<double> launches;
    for (int round = 0; round < 9; round++) {
        double from = now();
        for (int n = 0; n < 20000; n++)
            cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr);
        launches.push_back((now() - from) / 20000);
        CHECK(cudaDeviceSynchronize());
    }
    std::sort(launches.begin(), launches.end());
    double first = drains.empty() ? 0 : drains[0];
    std::sort(drains.begin() + !drains.empty(), drains.end());
    printf("%d\tstart %.1f ms\tfirst drain %.2f ms\tdrain %.2f ms\tlaunch %.3f us\n", count, start / 1e3, first / 1e3,
           drains.empty() ? 0 : drains[6] / 1e3, launches[4]);
}
