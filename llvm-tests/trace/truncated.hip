// Another process truncates the trace while the program runs: this is reported once, the program continues, and
// nothing more is written.
//
// RUN: %hip_cxx -O2 %s -o a
// RUN: %preload DEVPROF_TRACE=x.trace ./a x.trace > out 2>&1
// RUN: FileCheck %s --match-full-lines < out && test ! -s x.trace
//
// CHECK:     devprof: the trace x.trace was truncated to 0 bytes while it was being written: nothing more is recorded
// CHECK-NOT: {{^}}devprof:
// CHECK:     added: 300
#include "check.h"
#include <dlfcn.h>
#include <unistd.h>

__global__ void add(int *out) { atomicAdd(out, 1); }

static void launch(int *out, int count) {
    for (int n = 0; n < count; n++)
        add<<<1, 1>>>(out);
    CHECK(hipDeviceSynchronize());
}

int main(int, char **argv) {
    int *out;
    CHECK(hipHostMalloc((void **)&out, sizeof *out, 0));
    *out = 0;
    launch(out, 100);
    // Not while records are being written: writing to a part of the mapping that was cut off raises SIGBUS.
    auto *flush = (int (*)())dlsym(RTLD_DEFAULT, "devprof_trace_flush");
    if (!flush || flush())
        return 2;
    if (truncate(argv[1], 0))
        return 1;
    launch(out, 200);
    printf("added: %d\n", *out);
}
