// A child forked after the parent used the GPU exits as if devprof were not there, and does not touch the parent's
// file.
//
// RUN: rm -rf %t && mkdir %t && cd %t
// RUN: %hip_cxx %device_pgo %exact -O2 %s -o a %take_devprof %devprof_a && ./a
// RUN: ls | grep profraw | FileCheck %s --check-prefix=FILES
// RUN: %counts gfx1100.default.profraw | FileCheck %s
// RUN: %hip_cxx %device_pgo %exact -O2 %s -o b
// RUN: rm *.profraw && %preload ./b
// RUN: %counts gfx1100.default.profraw | FileCheck %s
#include "check.h"
#include <sys/wait.h>
#include <unistd.h>

__global__ void kernel(int *out) { out[threadIdx.x] = 1; }

static bool ends_well(pid_t child) {
    int status;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7;
}

int main() {
    int *out = device_ints(64);
    kernel<<<1, 64>>>(out);
    CHECK(hipDeviceSynchronize());
    pid_t child = fork();
    if (child == 0)
        exit(7);
    if (!ends_well(child))
        return 1;
    if (access("gfx1100.default.profraw", F_OK) == 0)
        return 2;
    kernel<<<1, 64>>>(out);
    CHECK(hipDeviceSynchronize());
}

// FILES:     {{^}}gfx1100.default.profraw{{$}}
// FILES-NOT: {{.}}

// CHECK: {{^}}_Z6kernelPi: [128]{{$}}
