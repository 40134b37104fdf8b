// Processes that fork before and after the first use of the GPU, and processes that write to the same names. The parent
// launches 64 threads, and 128 after its child has ended; a child launches 1,000.
//
// VARIANTS: preload inject archive
// RUN: for kind in after-exit after-_exit after-exec before-both before-child before-exec; do LLVM_PROFILE_FILE=$kind-%p.profraw %a $kind; done
// STDOUT: after-exit: child: exit 7
// STDOUT: after-_exit: child: exit 7
// STDOUT: after-exec: child: exit 0
// STDOUT: before-both: child: exit 0
// STDOUT: before-child: child: exit 0
// STDOUT: before-exec: child: exit 0
// COUNTS: sm_90.after-exit-*.profraw _Z6kernelPi: [192]
// COUNTS: sm_90.after-_exit-*.profraw _Z6kernelPi: [192]
// COUNTS: sm_90.after-exec-*.profraw _Z6kernelPi: [1192]
// COUNTS: sm_90.before-both-*.profraw _Z6kernelPi: [1192]
// COUNTS: sm_90.before-child-*.profraw _Z6kernelPi: [1000]
// COUNTS: sm_90.before-exec-*.profraw _Z6kernelPi: [1192]
// FILES: 1 sm_90.after-exit-*.profraw
// FILES: 1 sm_90.after-_exit-*.profraw
// FILES: 2 sm_90.after-exec-*.profraw
// FILES: 2 sm_90.before-both-*.profraw
// FILES: 1 sm_90.before-child-*.profraw
// FILES: 2 sm_90.before-exec-*.profraw
//
// A pool: eight processes, four at a time.
// RUN: for n in 1 2; do for m in 1 2 3 4; do LLVM_PROFILE_FILE=pool-%m.profraw %a child & done; wait; done
// COUNTS: sm_90.pool-*.profraw _Z6kernelPi: [8000]
// FILES: 1 sm_90.pool-*.profraw
//
// Without a pattern the last process wins, and its file is complete.
// RUN: for m in 1 2 3; do LLVM_PROFILE_FILE=last.profraw %a child & done; wait
// COUNTS: sm_90.last.profraw _Z6kernelPi: [1000]
//
// The host's profiles.
// HOST: after-exit-*.profraw
// HOST: after-_exit-*.profraw
// HOST: after-exec-*.profraw
// HOST: before-both-*.profraw
// HOST: before-child-*.profraw
// HOST: before-exec-*.profraw
// HOST: pool-*.profraw
// HOST: last.profraw
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
