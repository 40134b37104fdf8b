// Launches per thread and threads are the arguments. Prints the host's time per launch.
#include "common.h"
#include <chrono>
#include <thread>
#include <vector>
__global__ void empty() {}
int main(int argc, char **argv) {
    int launches = atoi(argv[1]), threads = atoi(argv[2]);
    empty<<<1, 1>>>();
    CHECK(cudaDeviceSynchronize());
    std::vector<std::thread> all;
    auto start = std::chrono::steady_clock::now();
    for (int n = 0; n < threads; n++)
        all.emplace_back([&] {
            for (int n = 0; n < launches; n++)
                empty<<<1, 1, 0, cudaStreamPerThread>>>();
            CHECK(cudaStreamSynchronize(cudaStreamPerThread));
        });
    for (auto &thread : all)
        thread.join();
    double ns = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
    printf("%.0f ns per launch\n", ns / launches);
    return 0;
}
