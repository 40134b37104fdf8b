// A process that forks, in every order of fork, exec and the first use of the GPU: no process crashes or hangs, none
// writes what another one has counted, and each that uses the GPU is drained. The same with snapshots.
//
// RUN: %hip_cxx %device_pgo %exact -O2 -c %s -o a.o
// RUN: %hip_cxx --hip-link a.o -o plain
// RUN: %hip_cxx --hip-link a.o -o linked %take_devprof %devprof_a
// RUN: bash -euc 'for kind in after-exit after-_exit after-exec before-both before-child before-exec; do %preload LLVM_PROFILE_FILE=$kind/%%p ./plain $kind; %counts $kind/gfx1100.*; ls $kind | grep -c gfx; done' > preload.out 2> preload.err
// RUN: FileCheck %s < preload.out
// RUN: not grep ^devprof: preload.err
// RUN: bash -euc 'for kind in after-exit after-_exit after-exec before-both before-child before-exec; do env DEVPROF_SNAPSHOT_MS=3 LLVM_PROFILE_FILE=s-$kind/%%p ./linked $kind; %counts s-$kind/gfx1100.*; ls s-$kind | grep -c gfx; done' > linked.out 2> linked.err
// RUN: FileCheck %s < linked.out
// RUN: not grep ^devprof: linked.err
//
// The parent launches 64 threads, and 128 after its child has ended; a child launches 1,000.
// CHECK:      after-exit: child: exit 7
// CHECK-NEXT: {{^}}_Z6kernelPi: [192]{{$}}
// CHECK-NEXT: {{^}}1{{$}}
// CHECK-NEXT: after-_exit: child: exit 7
// CHECK-NEXT: [192]
// CHECK-NEXT: {{^}}1{{$}}
// CHECK-NEXT: after-exec: child: exit 0
// CHECK-NEXT: [1192]
// CHECK-NEXT: {{^}}2{{$}}
// CHECK-NEXT: before-both: child: exit 0
// CHECK-NEXT: [1192]
// CHECK-NEXT: {{^}}2{{$}}
// CHECK-NEXT: before-child: child: exit 0
// CHECK-NEXT: [1000]
// CHECK-NEXT: {{^}}1{{$}}
// CHECK-NEXT: before-exec: child: exit 0
// CHECK-NEXT: [1192]
// CHECK-NEXT: {{^}}2{{$}}
//
// The same program without devprof.
// RUN: ./plain after-exit | FileCheck %s --check-prefix=BARE
// BARE: after-exit: child: exit 7
//
// LLVM 23's runtime: a child that was forked after the first use crashes in its exit handlers; a child and its parent
// that both use the GPU write the same file, even with %p.
// RUN: %hip_cxx %pgo -O2 %exact %s -o llvm
// RUN: %if llvm-runtime %{ env LLVM_PROFILE_FILE=l1/%%p ./llvm after-exit | FileCheck %s --check-prefix=LLVM-AFTER %}
// RUN: %if llvm-runtime %{ env LLVM_PROFILE_FILE=l2/%%p ./llvm before-both %}
// RUN: %if llvm-runtime %{ ls l2 | grep -c gfx1100 | FileCheck %s --check-prefix=LLVM-BOTH %}
// LLVM-AFTER: after-exit: child: signal 11
// LLVM-BOTH: {{^}}1{{$}}
#include "check.h"
#include <string.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

__global__ void kernel(int *out) { atomicAdd(out, 1); }

static void launch(int threads) {
    static int *out = device_ints(1);
    kernel<<<1, threads>>>(out);
    CHECK(hipDeviceSynchronize());
}

// Forks before or after the parent's first launch. The child uses the GPU itself, executes this program again, or
// exits.
int main(int, char **argv) {
    std::string kind = argv[1];
    if (kind == "child") {
        launch(1000);
        return 0;
    }
    bool after = kind.rfind("after", 0) == 0;
    if (after)
        launch(64);
    pid_t child = fork();
    if (child == 0) {
        if (kind == "after-exit")
            exit(7);
        if (kind == "after-_exit")
            _exit(7);
        if (kind == "after-exec" || kind == "before-exec")
            execl(argv[0], argv[0], "child", NULL);
        launch(1000);
        exit(0);
    }
    int status = 0;
    if (waitpid(child, &status, 0) != child)
        return 1;
    bool exited = WIFEXITED(status);
    printf("%s: child: %s %d\n", argv[1], exited ? "exit" : "signal", exited ? WEXITSTATUS(status) : WTERMSIG(status));
    if (kind == "before-child")
        return 0;
    if (!after)
        launch(64);
    launch(128);
}
