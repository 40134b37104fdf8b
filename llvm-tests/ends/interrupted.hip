// A signal handler of the program's that calls exit while its thread drains: the process ends, and what the drain before
// has written stays.
//
// RUN: rm -rf %t && mkdir %t && cd %t
// RUN: %hip_cxx %device_pgo %exact -O2 %s -o a %take_devprof %devprof_a
// RUN: bash -euc 'for n in 1 2 3 4 5; do %ended env LLVM_PROFILE_FILE=p ./a; done' > out 2> err
// RUN: FileCheck %s < out
// RUN: grep devprof: err | sort -u | FileCheck %s --check-prefix=SAID
// RUN: %counts gfx1100.p | FileCheck %s --check-prefix=COUNTS
// CHECK-COUNT-5: exit 5{{.*[[:space:]].*}}in time
// SAID: devprof: a signal handler interrupted a drain
// COUNTS: kernel
#include "check.h"
#include <signal.h>
#include <sys/time.h>

extern "C" int __llvm_profile_hip_collect_device_data();

__global__ void kernel(int *out) { out[threadIdx.x] = 1; }

int main() {
    int *out = device_ints(64);
    kernel<<<1, 64>>>(out);
    CHECK(hipDeviceSynchronize());
    __llvm_profile_hip_collect_device_data();
    signal(SIGALRM, [](int) { exit(5); });
    itimerval soon = {{0, 0}, {0, 20000}};
    setitimer(ITIMER_REAL, &soon, nullptr);
    for (;;) {
        kernel<<<1, 64>>>(out);
        __llvm_profile_hip_collect_device_data();
    }
}
