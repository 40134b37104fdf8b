// Without DEVPROF_TRACE nothing is traced, and HIP's functions are called directly: a call reaches HIP with the
// program's return address. With DEVPROF_TRACE, the return address is in the recording function. If a trace cannot be
// created, this is reported and the program runs untraced.
//
// RUN: %clang -O1 -shared -fPIC -DNEXT -x c %s -o next.so
// RUN: %hip_cxx -O2 %s -o a -Wl,-rpath,%t ./next.so
// RUN: %preload ./a | FileCheck %s --check-prefix=OFF
// RUN: %preload DEVPROF_TRACE=x.trace DEVPROF_DISABLE=1 ./a | FileCheck %s --check-prefix=OFF
// RUN: not ls x.trace
// RUN: %preload DEVPROF_TRACE=x.trace ./a | FileCheck %s --check-prefix=ON
// RUN: %trace --calls x.trace | FileCheck %s --check-prefix=CALLS
// RUN: %preload DEVPROF_TRACE=a/x.trace ./a 2>&1 | FileCheck %s --check-prefix=LOST
//
// OFF-COUNT-2: hipMemset from the program
// OFF:         the sum is 64
// ON-COUNT-2:  hipMemset from elsewhere
// ON:          the sum is 64
// CALLS:      hipMemset 0
// CALLS-NEXT: hipMemset 0
// CALLS-NEXT: hipLaunchKernel 0 _Z6kernelPi
// CALLS-NEXT: hipMemcpy 0
// CALLS-NOT:  {{.}}
// LOST:        devprof: cannot create the trace a/x.trace: {{.*}}; the program is not traced
// LOST:        the sum is 64
#ifdef NEXT
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stddef.h>
#include <string.h>

int hipMemset(void *to, int value, size_t size) {
    Dl_info caller = {0};
    dladdr(__builtin_return_address(0), &caller);
    const char *name = strrchr(caller.dli_fname, '/');
    printf("hipMemset from %s\n", name && strcmp(name, "/a") == 0 ? "the program" : "elsewhere");
    fflush(stdout);
    int (*next)(void *, int, size_t) = (int (*)(void *, int, size_t))dlsym(RTLD_NEXT, "hipMemset");
    return next(to, value, size);
}
#else
#include "check.h"

__global__ void kernel(int *out) { atomicAdd(out, 1); }

int main() {
    int *out = device_ints(1), sum;
    CHECK(hipMemset(out, 1, 1));
    CHECK(hipMemset(out, 0, 4));
    kernel<<<1, 64>>>(out);
    CHECK(hipMemcpy(&sum, out, 4, hipMemcpyDeviceToHost));
    printf("the sum is %d\n", sum);
    return 0;
}
#endif
