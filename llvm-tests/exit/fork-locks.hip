// A child inherits the locks of ROCr that are held while it is forked. devprof's threads hold none then: 50 children exit while
// snapshots are taken and dispatches are recorded.
//
// REQUIRES: model
// RUN: %hip_cxx %device_pgo %exact -O2 -c %s -o a.o
// RUN: %hip_cxx --hip-link a.o -o plain
// RUN: %hip_cxx --hip-link a.o -o linked %take_devprof %devprof_a
// RUN: %clang -x c++ -O1 -Wall -shared -fPIC %S/Inputs/held-lock.cpp -o held-lock.so
// RUN: env DEVPROF_SNAPSHOT_MS=1 HSA_TOOLS_LIB=./held-lock.so ./linked 2>&1 | FileCheck %s --check-prefixes=SNAPSHOTS,CHECK
// RUN: %preload DEVPROF_SNAPSHOT_MS=1 DEVPROF_TRACE=trace HSA_TOOLS_LIB="./held-lock.so %devprof_so" ./plain 2>&1 | FileCheck %s --check-prefixes=BOTH,CHECK
// SNAPSHOTS: held by snapshots: yes, by the trace: no
// BOTH:      held by snapshots: yes, by the trace: yes
// CHECK:     0 of 50 children hung, 0 crashed
#include "check.h"
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

__global__ void kernel(int *out) { atomicAdd(out, 1); }

int main() {
    int *out = device_ints(1), hung = 0, crashed = 0, children = 50;
    for (int i = 0; i < children && hung < 3; i++) {
        // Several, so that the trace has work during the fork.
        for (int n = 0; n < 5; n++)
            kernel<<<1, 64>>>(out);
        CHECK(hipDeviceSynchronize());
        pid_t child = fork();
        if (child == 0) {
            alarm(20); // Ends a child that hangs.
            exit(0);
        }
        int status = 0;
        if (waitpid(child, &status, 0) != child)
            return 1;
        hung += WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
        crashed += WIFSIGNALED(status) && WTERMSIG(status) != SIGALRM;
    }
    printf("%d of %d children hung, %d crashed\n", hung, children, crashed);
}
