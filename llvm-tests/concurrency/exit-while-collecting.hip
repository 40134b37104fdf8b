// A process that exits while other threads collect ends as it would without devprof. Its files have the counts of every
// kernel that ran before, and no loss is reported.
//
// RUN: %hip_cxx %device_pgo %exact -O2 -c %s -o a.o
// RUN: %hip_cxx --hip-link a.o -o a
// RUN: %hip_cxx --hip-link a.o -o b %take_devprof %devprof_a
// RUN: sh -ec 'for n in 1 2 3 4 5; do LLVM_PROFILE_FILE=preload/$n.profraw %preload ./a; done' 2> messages
// RUN: sh -ec 'for n in 1 2 3 4 5; do LLVM_PROFILE_FILE=archive/$n.profraw ./b; done' 2>> messages
// RUN: not grep ^devprof: messages
// RUN: sh -ec 'for f in preload/*.profraw archive/*.profraw; do %counts $f; done' | FileCheck %s
//
// CHECK-COUNT-10: {{^}}_Z6kernelPi: [100]{{$}}
// CHECK-NOT:      {{.}}
#include "check.h"
#include <dlfcn.h>
#include <thread>
#include <unistd.h>

// In the archive.
extern "C" __attribute__((weak)) int __llvm_profile_hip_collect_device_data();

__global__ void kernel(int *out) { out[threadIdx.x] = 1; }

int main() {
    // Ends a run that hangs.
    alarm(300);
    auto *collect = __llvm_profile_hip_collect_device_data;
    if (!collect)
        collect = (int (*)())dlsym(RTLD_DEFAULT, "__llvm_profile_hip_collect_device_data");
    int *out = device_ints(64);
    kernel<<<1, 100>>>(out);
    CHECK(hipDeviceSynchronize());
    for (int n = 0; n < 4; n++)
        std::thread([=] {
            for (;;)
                collect();
        }).detach();
    usleep(20000);
    exit(0);
}
