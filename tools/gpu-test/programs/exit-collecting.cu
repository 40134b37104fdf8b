// A program exits while other threads collect: it ends with its own status, and its profile has the counts. (While other
// threads launch kernels, exit crashes in CUDA 13.0, with and without devprof.)
//
// VARIANTS: preload archive
// RUN: %{cu} exit-collecting.cu -DDEVPROF_OPTIONAL -o exit-collecting.o
// RUN: %{cxx} exit-collecting.o -o out/a %{link}
// GPU: for n in 1 2 3 4 5; do status=0; LLVM_PROFILE_FILE=collect-$n.profraw timeout 50 %a || status=$?; echo $status; done
//
// CHECK: stdout: 7
// CHECK: stdout: 7
// CHECK: stdout: 7
// CHECK: stdout: 7
// CHECK: stdout: 7
// CHECK: collect-?.profraw: main
// Five runs with 100 threads.
// CHECK: sm_90.collect-?.profraw: _Z6kernelPi: [500]
#include "check.h"
#include "devprof.h"
#include <thread>
#include <unistd.h>

__global__ void kernel(int *out) { atomicAdd(out, 1); }

int main() {
    int *out = device_ints(1);
    kernel<<<1, 100>>>(out);
    CHECK(cudaDeviceSynchronize());
    for (int n = 0; n < 3; n++)
        std::thread([] {
            for (;;)
                devprof_collect();
        }).detach();
    usleep(20000);
    exit(7);
}
