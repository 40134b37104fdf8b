// Several processes with the same DEVPROF_TRACE: if another process is already writing the trace, a process writes a
// file next to it and reports this, and both files are complete. With %p each process has its own file, and nothing is
// reported. A child that was forked after HIP was used writes and reports nothing, and its parent's trace continues.
//
// RUN: %hip_cxx -O2 %s -o a
//
// A child that executes this program again while the parent's trace is open.
// RUN: %preload DEVPROF_TRACE=x.trace ./a exec > exec.out 2> exec.err
// RUN: FileCheck %s --check-prefix=OTHER-FILE < exec.err
// RUN: ls | grep -c '^x[.]trace' | FileCheck %s --check-prefix=TWO
// RUN: bash -c 'ls x.trace.$(sed -n "s/^child //p" exec.out)'
// RUN: bash -c 'for trace in x.trace*; do %trace --summary $trace || exit; done' > exec.traces
// RUN: FileCheck %s --check-prefix=BOTH < exec.traces
// OTHER-FILE: devprof: another process is writing the trace x.trace: this process writes to x.trace.{{[0-9]+}} (use %p in DEVPROF_TRACE for one file per process, %h-%p in containers)
// OTHER-FILE-NOT: {{^}}devprof:
// TWO: {{^}}2{{$}}
// BOTH: calls=200 dispatches=200 without-call=0
// BOTH: dropped=0 closed=1
// BOTH: calls=100 dispatches=100 without-call=0
// BOTH: dropped=0 closed=1
//
// Afterwards the name can be used again.
// RUN: %preload DEVPROF_TRACE=x.trace ./a alone > alone.out 2> alone.err
// RUN: not grep ^devprof: alone.err
// RUN: ls | grep -c '^x[.]trace' | FileCheck %s --check-prefix=TWO
//
// A child that was forked before HIP was used, and its parent, with %p.
// RUN: %preload DEVPROF_TRACE=%%p.trace ./a before > before.out 2> before.err
// RUN: not grep ^devprof: before.err
// RUN: bash -c 'ls | grep -c "^[0-9]*[.]trace"' | FileCheck %s --check-prefix=TWO
// RUN: bash -c 'for trace in [0-9]*.trace; do %trace --summary $trace || exit; done' | FileCheck %s --check-prefix=FORKED
// FORKED-COUNT-2: calls=100 dispatches=100 without-call=0
//
// A child that was forked afterwards, between the parent's launches, and makes a call.
// RUN: %preload DEVPROF_TRACE=y.trace ./a after > after.out 2> after.err
// RUN: not grep ^devprof: after.err
// RUN: ls | grep '^y' | FileCheck %s --check-prefix=ONE
// RUN: %trace --summary y.trace | FileCheck %s --check-prefix=CONTINUES
// ONE: y.trace
// ONE-NOT: {{.}}
// CONTINUES: calls=200 dispatches=200 without-call=0
// CONTINUES: threads=1 dropped=0 closed=1
#include "check.h"
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

__global__ void kernel(int *out) { atomicAdd(out, 1); }

static void launch(int *out) {
    for (int n = 0; n < 100; n++)
        kernel<<<1, 1>>>(out);
}

// Runs `child` in another process and waits for it.
static void forked(void (*child)(char *), char *program) {
    fflush(stdout);
    pid_t pid = fork();
    int status = 1;
    if (pid == 0) {
        child(program);
        // Not exit: HIP's exit handlers belong to the parent.
        _exit(0);
    }
    printf("child %d\n", pid);
    if (waitpid(pid, &status, 0) != pid || status != 0)
        printf("the child exited with %d\n", status), exit(1);
}

static void again(char *program) {
    execl(program, program, "alone", NULL);
    _exit(1);
}

// A call that HIP answers without a launch, and that the parent's trace would record.
static void empty_copy(char *) { char byte = 0; _exit(hipMemcpy(&byte, &byte, 0, hipMemcpyHostToHost)); }

int main(int, char **argv) {
    int *out, right = 100;
    if (!strcmp(argv[1], "before")) {
        // Both run the rest of this function, the parent after the child has ended.
        pid_t pid = fork();
        int status;
        if (pid && (waitpid(pid, &status, 0) != pid || status != 0))
            return 1;
    }
    CHECK(hipHostMalloc((void **)&out, sizeof *out, 0));
    *out = 0;
    launch(out);
    void (*child)(char *) = !strcmp(argv[1], "exec") ? again : !strcmp(argv[1], "after") ? empty_copy : NULL;
    if (child) {
        forked(child, argv[0]);
        launch(out);
        right = 200;
    }
    CHECK(hipDeviceSynchronize());
    return *out != right;
}
