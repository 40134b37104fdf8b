// However a program ends, the counts of its kernels are saved, and the exit status is the same as without devprof:
// signals with their default action, abort, an uncaught exception, quick_exit. After _exit, a fault and SIGKILL, the
// counts of the last snapshot are there.
//
// VARIANTS: preload archive
// LLVM's host runtime creates its file when the program starts, and often writes nothing to it.
// HOST: none
// FILES: 1 abort.profraw
// FILES: 1 throw.profraw
// FILES: 1 term.profraw
// FILES: 1 int.profraw
// FILES: 1 hup.profraw
// FILES: 1 quick_exit.profraw
// FILES: 1 _exit.profraw
// FILES: 1 segv.profraw
// FILES: 1 kill.profraw
// RUN: for kind in abort throw term int hup quick_exit; do status=0; (LLVM_PROFILE_FILE=$kind.profraw %a $kind) || status=$?; echo $kind $status; done 2> errors
// RUN: for kind in _exit segv kill; do status=0; (DEVPROF_SNAPSHOT_MS=5 LLVM_PROFILE_FILE=$kind.profraw %a $kind) || status=$?; echo $kind $status; done 2>> errors
// RUN: if grep devprof: errors; then exit 1; fi
// STDOUT: abort 134
// STDOUT: throw 134
// STDOUT: term 143
// STDOUT: int 130
// STDOUT: hup 129
// STDOUT: quick_exit 3
// STDOUT: _exit 3
// STDOUT: segv 139
// STDOUT: kill 137
// COUNTS: sm_90.abort.profraw _Z6kernelPi: [64]
// COUNTS: sm_90.throw.profraw _Z6kernelPi: [64]
// COUNTS: sm_90.term.profraw _Z6kernelPi: [64]
// COUNTS: sm_90.int.profraw _Z6kernelPi: [64]
// COUNTS: sm_90.hup.profraw _Z6kernelPi: [64]
// COUNTS: sm_90.quick_exit.profraw _Z6kernelPi: [64]
// COUNTS: sm_90._exit.profraw _Z6kernelPi: [64]
// COUNTS: sm_90.segv.profraw _Z6kernelPi: [64]
// COUNTS: sm_90.kill.profraw _Z6kernelPi: [64]
#include "check.h"
#include <signal.h>
#include <stdexcept>
#include <string>
#include <unistd.h>

__global__ void kernel(int *out) { out[threadIdx.x] = 1; }

int main(int, char **argv) {
    std::string kind = argv[1];
    // The tests may have been started with these signals ignored.
    signal(SIGINT, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    kernel<<<1, 64>>>(device_ints(64));
    CHECK(cudaDeviceSynchronize());
    if (getenv("DEVPROF_SNAPSHOT_MS"))
        usleep(500000);
    if (kind == "abort")
        abort();
    if (kind == "throw")
        throw std::runtime_error("uncaught");
    if (kind == "term")
        kill(getpid(), SIGTERM);
    if (kind == "int")
        kill(getpid(), SIGINT);
    if (kind == "hup")
        kill(getpid(), SIGHUP);
    if (kind == "quick_exit")
        quick_exit(3);
    if (kind == "_exit")
        _exit(3);
    if (kind == "segv")
        *(volatile int *)8 = 1;
    if (kind == "kill")
        kill(getpid(), SIGKILL);
    sleep(10); // until the signal arrives
    return 9;
}
