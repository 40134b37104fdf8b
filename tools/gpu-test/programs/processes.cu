// Processes that fork before and after the first use of the GPU, and processes that write to the same names. The parent
// launches 64 threads, and 128 after its child has ended; a child launches 1,000.
//
// VARIANTS: preload inject archive
// GPU: for kind in after-exit after-_exit after-exec before-both before-child before-exec; do LLVM_PROFILE_FILE=$kind-%p.profraw %a $kind; done
// A pool: eight processes, four at a time.
// GPU: for n in 1 2; do for m in 1 2 3 4; do LLVM_PROFILE_FILE=pool-%m.profraw %a child & done; wait; done
// Without a pattern the last process wins, and its file is complete.
// GPU: for m in 1 2 3; do LLVM_PROFILE_FILE=last.profraw %a child & done; wait
//
// CHECK: stdout: after-exit: child: exit 7
// CHECK: stdout: after-_exit: child: exit 7
// CHECK: stdout: after-exec: child: exit 0
// CHECK: stdout: before-both: child: exit 0
// CHECK: stdout: before-child: child: exit 0
// CHECK: stdout: before-exec: child: exit 0
// CHECK: after-_exit-*.profraw: main
// CHECK: after-exec-*.profraw: main
// CHECK: after-exit-*.profraw: main
// CHECK: before-both-*.profraw: main
// CHECK: before-child-*.profraw: main
// CHECK: before-exec-*.profraw: main
// CHECK: last.profraw: main
// CHECK: pool-*.profraw: main
// CHECK: sm_90.after-_exit-*.profraw: 1 files
// CHECK: sm_90.after-_exit-*.profraw: _Z6kernelPi: [192]
// CHECK: sm_90.after-exec-*.profraw: 2 files
// CHECK: sm_90.after-exec-*.profraw: _Z6kernelPi: [1192]
// CHECK: sm_90.after-exit-*.profraw: 1 files
// CHECK: sm_90.after-exit-*.profraw: _Z6kernelPi: [192]
// CHECK: sm_90.before-both-*.profraw: 2 files
// CHECK: sm_90.before-both-*.profraw: _Z6kernelPi: [1192]
// CHECK: sm_90.before-child-*.profraw: 1 files
// CHECK: sm_90.before-child-*.profraw: _Z6kernelPi: [1000]
// CHECK: sm_90.before-exec-*.profraw: 2 files
// CHECK: sm_90.before-exec-*.profraw: _Z6kernelPi: [1192]
// CHECK: sm_90.last.profraw: _Z6kernelPi: [1000]
// CHECK: sm_90.pool-*.profraw: 1 files
// CHECK: sm_90.pool-*.profraw: _Z6kernelPi: [8000]
#include "check.h"
#include <string.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

__global__ void kernel(int *out) { atomicAdd(out, 1); }

static void launch(int threads) {
    static int *out = device_ints(1);
    kernel<<<1, threads>>>(out);
    CHECK(cudaDeviceSynchronize());
}

// Forks before or after the parent's first launch. The child uses the GPU itself, executes this program again, or exits.
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
