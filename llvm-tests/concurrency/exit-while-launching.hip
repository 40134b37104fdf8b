// A program exits while other threads launch kernels: it ends, its file is complete, and the file has the counts of all
// kernels that were launched before the exit began, at least 300 launches of 64 threads. The exit status is not
// checked: HIP can crash while the threads are running, with and without devprof.
//
// RUN: %hip_cxx %device_pgo %exact -O2 -c %s -o a.o
// RUN: %hip_cxx --hip-link a.o -o plain
// RUN: %hip_cxx --hip-link a.o -o linked %take_devprof %devprof_a
// RUN: bash -euc 'for n in {1..6}; do rm -f gfx*; %ended %preload ./plain; %counts gfx1100.default.profraw; done' > preload.out 2> preload.err
// RUN: sed 's/.*\[\(.*\)\]/\1/' preload.out | awk '/^[0-9]/ { n += $1 >= 19200 } /in time/ { n++ } END { exit n != 12 }'
// RUN: bash -euc 'for n in {1..6}; do rm -f gfx*; %ended env DEVPROF_SNAPSHOT_MS=1 ./linked; %counts gfx1100.default.profraw; done' > linked.out 2> linked.err
// RUN: sed 's/.*\[\(.*\)\]/\1/' linked.out | awk '/^[0-9]/ { n += $1 >= 19200 } /in time/ { n++ } END { exit n != 12 }'
// RUN: bash -c 'cat preload.err linked.err' | FileCheck %s --check-prefix=MESSAGE --allow-empty
// MESSAGE-NOT: {{^}}devprof:
//
// RUN: %hip_cxx %pgo %exact -O2 %s -o llvm
// RUN: bash -euc 'for n in 1 2; do rm -f gfx*; %ended ./llvm; %counts gfx1100*.profraw || true; done' > llvm.out 2> llvm.err
// RUN: %if llvm-runtime %{ FileCheck %s --check-prefix=LLVM < llvm.out %}
// LLVM-COUNT-2: _Z6kernelPi
#include "check.h"
#include <atomic>
#include <thread>
#include <unistd.h>

__global__ void kernel(int *out) { atomicAdd(out, 1); }

int main() {
    int *out = device_ints(1);
    std::atomic<int> launched{0};
    auto launch = [&] {
        hipStream_t stream;
        CHECK(hipStreamCreate(&stream));
        for (;;) {
            kernel<<<1, 64, 0, stream>>>(out);
            if (++launched % 16 == 0)
                CHECK(hipStreamSynchronize(stream));
        }
    };
    for (int n = 0; n < 3; n++)
        std::thread(launch).detach();
    while (launched < 300)
        usleep(1000);
    exit(5);
}
