// However a program ends, the counts of its kernels are saved, and the exit status is the same as without devprof:
// signals with their default action, abort, an uncaught exception, quick_exit. After _exit, a fault and SIGKILL, the
// counts of the last snapshot are there.
//
// VARIANTS: preload archive
// GPU: for kind in abort throw term int hup quick_exit; do status=0; (LLVM_PROFILE_FILE=$kind.profraw %a $kind) || status=$?; echo $kind $status; done 2> errors
// GPU: for kind in _exit segv kill; do status=0; (DEVPROF_SNAPSHOT_MS=5 LLVM_PROFILE_FILE=$kind.profraw %a $kind) || status=$?; echo $kind $status; done 2>> errors
// GPU: if grep devprof: errors; then exit 1; fi
//
// CHECK: stdout: abort 134
// CHECK: stdout: throw 134
// CHECK: stdout: term 143
// CHECK: stdout: int 130
// CHECK: stdout: hup 129
// CHECK: stdout: quick_exit 3
// CHECK: stdout: _exit 3
// CHECK: stdout: segv 139
// CHECK: stdout: kill 137
// CHECK: _exit.profraw: {{(no )?main}}
// CHECK: abort.profraw: {{(no )?main}}
// CHECK: hup.profraw: {{(no )?main}}
// CHECK: int.profraw: {{(no )?main}}
// CHECK: kill.profraw: {{(no )?main}}
// CHECK: quick_exit.profraw: {{(no )?main}}
// CHECK: segv.profraw: {{(no )?main}}
// CHECK: sm_90._exit.profraw: _Z6kernelPi: [64]
// CHECK: sm_90.abort.profraw: _Z6kernelPi: [64]
// CHECK: sm_90.hup.profraw: _Z6kernelPi: [64]
// CHECK: sm_90.int.profraw: _Z6kernelPi: [64]
// CHECK: sm_90.kill.profraw: _Z6kernelPi: [64]
// CHECK: sm_90.quick_exit.profraw: _Z6kernelPi: [64]
// CHECK: sm_90.segv.profraw: _Z6kernelPi: [64]
// CHECK: sm_90.term.profraw: _Z6kernelPi: [64]
// CHECK: sm_90.throw.profraw: _Z6kernelPi: [64]
// CHECK: term.profraw: {{(no )?main}}
// CHECK: throw.profraw: {{(no )?main}}
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
