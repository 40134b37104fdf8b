// Usage: launches FATBIN COUNT THREADS [other]. Loads a library COUNT times, as the CUDA runtime does for each translation
// unit, and launches a kernel from so many threads. `other`: with another context, which is never used. Prints the time of
// the loading with the first launch, and the median time of a launch: of batches that fit into the queue, in 1.5 seconds.
#include "measure.h"
#include <cuda.h>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <time.h>

static double now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

int main(int argc, char **argv) {
    int count = atoi(argv[2]), threads = atoi(argv[3]), items = 1, *out;
    std::ifstream file(argv[1], std::ios::binary);
    std::string code{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    CHECK(cudaMalloc(&out, 4096));
    CUcontext context, other;
    CHECK(cuCtxGetCurrent(&context));
    if (argc > 4) {
        CUdevice device;
        CHECK(cuDeviceGet(&device, 0));
        CHECK(cuCtxCreate(&other, nullptr, 0, device));
        CHECK(cuCtxPopCurrent(&other));
    }
    double begin = now();
    CUkernel kernel;
    for (int n = 0; n < count; n++) {
        CUlibrary library;
        CHECK(cuLibraryLoadData(&library, code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
        CHECK(cuLibraryGetKernel(&kernel, library, "counted"));
    }
    void *arguments[] = {&out, &items};
    auto launch = [&](CUstream stream) {
        CHECK(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 32, 1, 1, 0, stream, arguments, nullptr));
    };
    launch(nullptr);
    CHECK(cudaDeviceSynchronize());
    double loaded = now() - begin;
    std::vector<std::vector<double>> times(threads);
    auto measure_launches = [&](int thread) {
        CHECK(cuCtxSetCurrent(context));
        CUstream stream;
        CHECK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
        double end = now() + 1.5e6;
        do {
            double from = now();
            for (int n = 0; n < 200; n++)
                launch(stream);
            times[thread].push_back((now() - from) / 200);
            CHECK(cuStreamSynchronize(stream));
        } while (now() < end);
    };
    std::vector<std::thread> all;
    for (int n = 0; n < threads; n++)
        all.emplace_back(measure_launches, n);
    for (std::thread &thread : all)
        thread.join();
    std::vector<double> sorted;
    for (auto &of : times)
        sorted.insert(sorted.end(), of.begin(), of.end());
    std::sort(sorted.begin(), sorted.end());
    printf("%d libraries, %d threads%s\tloaded %.1f ms\tlaunch %.3f us\t(fastest tenth %.3f)\n", count, threads,
           argc > 4 ? ", another context" : "", loaded / 1e3, sorted[sorted.size() / 2], sorted[sorted.size() / 10]);
}
