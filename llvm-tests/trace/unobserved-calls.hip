// Launches through a function pointer that the program got from dlvsym, which devprof does not define: devprof does not
// observe these calls. Their dispatches are recorded, between those of calls that it observes, and marked. The program
// exits without waiting for the last of them. (dlsym.hip has the function pointers that lead to observed calls.)
//
// RUN: %hip_cxx -O2 %s -o a
// RUN: ./a > alone
// RUN: %preload DEVPROF_TRACE=x.trace ./a > traced && diff alone traced
// RUN: %trace --calls x.trace | FileCheck %s --check-prefix=CALLS --match-full-lines
// RUN: %trace --summary x.trace | FileCheck %s --check-prefix=SUMMARY --match-full-lines
// RUN: %trace x.trace | grep '^dispatch' | FileCheck %s --check-prefix=MARKED
//
// CALLS:      hipLaunchKernel 0 _Z3addPi
// CALLS-NEXT: hipLaunchKernel 0 _Z3addPi
// CALLS-NEXT: hipLaunchKernel 0 _Z3addPi
// CALLS-NOT:  {{.}}
// SUMMARY:      calls=3 dispatches=13 without-call=10
// SUMMARY-NEXT: threads=1 dropped=0 closed=1
// SUMMARY-NEXT: hipLaunchKernel calls=3 dispatches=3 each=1..1
// MARKED:      dispatch 1 _Z3addPi call={{[1-9]}}
// MARKED-SAME: flags={{[a-z]+$}}
// MARKED-NEXT: dispatch 2 _Z3addPi call=0
// MARKED-SAME: no-call
// MARKED-NEXT: dispatch 3 _Z3addPi call={{[1-9]}}
// MARKED-NEXT: dispatch 4 _Z3addPi call=0
// MARKED-SAME: no-call
// MARKED-NEXT: dispatch 5 _Z3addPi call={{[1-9]}}
// MARKED-COUNT-8: no-call
// MARKED-NOT:  dispatch
#include "check.h"
#include <dlfcn.h>

__global__ void add(int *out) { atomicAdd(out, 1); }

using Launch = hipError_t(const void *, dim3, dim3, void **, size_t, hipStream_t);

int main() {
    int *out;
    CHECK(hipHostMalloc((void **)&out, sizeof *out, 0));
    *out = 0;
    void *arguments[] = {&out};
    void *hip = dlopen("libamdhip64.so.7", RTLD_NOW | RTLD_NOLOAD);
    auto *launch = (Launch *)dlvsym(hip, "hipLaunchKernel", "hip_4.2");
    for (int n = 0; n < 2; n++) {
        add<<<1, 1>>>(out);
        CHECK(launch((const void *)add, 1, 1, arguments, 0, NULL));
    }
    add<<<1, 1>>>(out);
    CHECK(hipDeviceSynchronize());
    printf("added: %d\n", *out);
    for (int n = 0; n < 8; n++)
        CHECK(launch((const void *)add, 1, 1, arguments, 0, NULL));
    return 0;
}
