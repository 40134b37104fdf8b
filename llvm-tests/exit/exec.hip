// A program that counts, and then replaces itself (exec): with the preloaded library, the counts of both programs are in the
// profile (%m), also those of a kernel that still runs. A call that fails changes nothing. Children that call exec save nothing:
// they are as without devprof.
//
// RUN: %hip_cxx %device_pgo %exact -O2 %s -o a
// RUN: bash -euc 'for kind in execve execv execvp execvpe execl execlp execle fexecve execveat; do %preload LLVM_PROFILE_FILE=$kind/%%m ./a $kind one two; %counts $kind/gfx1100.*; done' > out 2> err
// RUN: not grep ^devprof: err
// RUN: grep -c ': one two X=1$' out | FileCheck %s --check-prefix=NINE
// RUN: grep -c '^_Z6kernelPi: .192.$' out | FileCheck %s --check-prefix=NINE
// RUN: count 18 < out
// NINE: {{^}}9{{$}}
//
// Without handlers of signals and without snapshots, too.
// RUN: %preload DEVPROF_SIGNALS=0 LLVM_PROFILE_FILE=off/%%m ./a execv one two > off.out && %counts off/gfx1100.* | FileCheck %s --check-prefix=BOTH
// BOTH: {{^}}_Z6kernelPi: [192]{{$}}
//
// The call fails, and the program continues.
// RUN: %preload LLVM_PROFILE_FILE=fails/%%m ./a fails 2> err
// RUN: not grep ^devprof: err
// RUN: %counts fails/gfx1100.* | FileCheck %s --check-prefix=FAILS
// FAILS: {{^}}_Z6kernelPi: [96]{{$}}
//
// With %p in the name, both programs have the same file, which is reported.
// RUN: %preload LLVM_PROFILE_FILE=same/%%p ./a execv one two 2>&1 | FileCheck %s --check-prefix=SAME
// RUN: %counts same/gfx1100.* | FileCheck %s --check-prefix=SECOND
// SAME: devprof: {{.*}}/same/gfx1100.{{[0-9]+}} is replaced: it has the counts of the program that this process executed before (exec)
// SECOND: {{^}}_Z6kernelPi: [128]{{$}}
//
// The children of fork, vfork and posix_spawn do not save what the parent has counted: it ends with _exit, which loses it.
// RUN: bash -euc 'for kind in fork vfork spawn; do %preload LLVM_PROFILE_FILE=children/%%p ./a $kind; done' | FileCheck %s --check-prefix=CHILDREN
// RUN: not ls children
// CHILDREN:      fork: 7
// CHILDREN-NEXT: vfork: 7
// CHILDREN-NEXT: spawn: 7
//
// `devprof run` reports no loss.
// RUN: %devprof run --library %devprof_so --profile run/%%m ./a execve one two 2>&1 | FileCheck %s --check-prefix=SUMMARY
// RUN: %counts run/gfx1100.* | FileCheck %s --check-prefix=BOTH
// SUMMARY-NOT: lost
// SUMMARY-NOT: killed
#include "check.h"
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

__global__ void kernel(int *out) { atomicAdd(out, 1); }

static void launch(int threads) {
    static int *out = device_ints(1);
    kernel<<<1, threads>>>(out);
}

static int run_child(const std::string &kind) {
    char shell[] = "/bin/sh", option[] = "-c", script[] = "exit 7";
    char *arguments[] = {shell, option, script, nullptr};
    pid_t child;
    int status = 0;
    if (kind == "spawn") {
        posix_spawn(&child, shell, nullptr, nullptr, arguments, environ);
    } else {
        child = kind == "fork" ? fork() : vfork();
        if (child == 0) {
            execve(shell, arguments, environ);
            _exit(1);
        }
    }
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
}

int main(int count, char **arguments) {
    std::string kind = arguments[1];
    if (count == 5) {
        // The second program.
        launch(128);
        CHECK(hipDeviceSynchronize());
        printf("%s: %s %s X=%s\n", arguments[1], arguments[2], arguments[3], getenv("X") ? getenv("X") : arguments[4]);
        return 0;
    }
    launch(64);
    if (kind == "fork" || kind == "vfork" || kind == "spawn") {
        CHECK(hipDeviceSynchronize());
        printf("%s: %d\n", arguments[1], run_child(kind));
        fflush(stdout);
        _exit(0);
    }
    if (kind == "fails") {
        execl("/does/not/exist", "x", NULL);
        launch(32);
        CHECK(hipDeviceSynchronize());
        return 0;
    }
    setenv("X", "1", 1);
    char *self = arguments[0], *one = arguments[2], *two = arguments[3];
    char last[] = "1";
    char *list[] = {self, arguments[1], one, two, last, nullptr};
    if (kind == "execve")
        execve(self, list, environ);
    if (kind == "execv")
        execv(self, list);
    if (kind == "execvp")
        execvp(self, list);
    if (kind == "execvpe")
        execvpe(self, list, environ);
    if (kind == "execl")
        execl(self, self, arguments[1], one, two, last, NULL);
    if (kind == "execlp")
        execlp(self, self, arguments[1], one, two, last, NULL);
    if (kind == "execle")
        execle(self, self, arguments[1], one, two, last, NULL, environ);
    if (kind == "fexecve")
        fexecve(open(self, O_RDONLY), list, environ);
    if (kind == "execveat")
        execveat(AT_FDCWD, self, list, environ, 0);
    perror("exec");
    return 1;
}
