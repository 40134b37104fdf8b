// However a program ends, its kernels' counts are saved, and its parent sees the same exit status as without devprof.
//
// All counts: a signal with its default action, abort, an uncaught exception, quick_exit.
// RUN: %hip_cxx %device_pgo %exact -O2 -c %s -o a.o
// RUN: %hip_cxx --hip-link a.o -o plain
// RUN: %hip_cxx --hip-link a.o -o linked %take_devprof %devprof_a
// RUN: bash -euc 'for kind in abort throw term int hup quick_exit; do %ended env LLVM_PROFILE_FILE=$kind %preload ./plain $kind; %counts gfx1100.$kind; done' > preload.out 2> preload.err
// RUN: FileCheck %s < preload.out
// RUN: not grep ^devprof: preload.err
// RUN: bash -euc 'for kind in abort throw term int hup quick_exit; do %ended env LLVM_PROFILE_FILE=l-$kind ./linked $kind; %counts gfx1100.l-$kind; done' > linked.out 2> linked.err
// RUN: FileCheck %s < linked.out
// RUN: not grep ^devprof: linked.err
// CHECK:      signal SIGABRT
// CHECK-NEXT: in time
// CHECK-NEXT: {{^}}_Z6kernelPi: [64]{{$}}
// CHECK-NEXT: signal SIGABRT
// CHECK-NEXT: in time
// CHECK-NEXT: [64]
// CHECK-NEXT: signal SIGTERM
// CHECK-NEXT: in time
// CHECK-NEXT: [64]
// CHECK-NEXT: signal SIGINT
// CHECK-NEXT: in time
// CHECK-NEXT: [64]
// CHECK-NEXT: signal SIGHUP
// CHECK-NEXT: in time
// CHECK-NEXT: [64]
// CHECK-NEXT: exit 3
// CHECK-NEXT: in time
// CHECK-NEXT: [64]
//
// The counts of the last snapshot: _exit, a fault, SIGKILL.
// RUN: bash -euc 'for kind in _exit segv kill; do %ended env LLVM_PROFILE_FILE=s-$kind SNAPSHOT=gfx1100.s-$kind DEVPROF_SNAPSHOT_MS=5 %preload ./plain $kind; %counts gfx1100.s-$kind; done' > snapshot.out 2> snapshot.err
// RUN: FileCheck %s --check-prefix=SNAPSHOT < snapshot.out
// RUN: not grep ^devprof: snapshot.err
// RUN: bash -euc 'for kind in _exit segv kill; do %ended env LLVM_PROFILE_FILE=sl-$kind SNAPSHOT=gfx1100.sl-$kind DEVPROF_SNAPSHOT_MS=5 ./linked $kind; %counts gfx1100.sl-$kind; done' | FileCheck %s --check-prefix=SNAPSHOT
// SNAPSHOT:      exit 3
// SNAPSHOT-NEXT: in time
// SNAPSHOT-NEXT: {{^}}_Z6kernelPi: [64]{{$}}
// SNAPSHOT-NEXT: signal SIGSEGV
// SNAPSHOT-NEXT: in time
// SNAPSHOT-NEXT: [64]
// SNAPSHOT-NEXT: signal SIGKILL
// SNAPSHOT-NEXT: in time
// SNAPSHOT-NEXT: [64]
//
// The program's own handler, installed before or after devprof's; a handler that calls the previous one; an ignored
// signal; another program started by exec: all behave as without devprof. The same with DEVPROF_SIGNALS=0.
// RUN: bash -euc 'for kind in own-first own-later chained ignored exec; do %ended env LLVM_PROFILE_FILE=$kind %preload ./plain $kind; done' | FileCheck %s --check-prefix=OTHERS
// RUN: %counts gfx1100.chained | FileCheck %s --check-prefix=CHAINED
// RUN: %ended env LLVM_PROFILE_FILE=off DEVPROF_SIGNALS=0 %preload ./plain term | FileCheck %s --check-prefix=OFF
// RUN: not ls gfx1100.off
// OTHERS:      own handler
// OTHERS-NEXT: exit 4
// OTHERS-NEXT: in time
// OTHERS-NEXT: own handler
// OTHERS-NEXT: exit 4
// OTHERS-NEXT: in time
// OTHERS-NEXT: own handler
// OTHERS-NEXT: signal SIGTERM
// OTHERS-NEXT: in time
// OTHERS-NEXT: exit 5
// OTHERS-NEXT: in time
// OTHERS-NEXT: SigCgt no signal of this program
// OTHERS-NEXT: exit 0
// CHAINED: {{^}}_Z6kernelPi: [64]{{$}}
// OFF: signal SIGTERM
//
// If the thread that receives the signal holds a lock that the drain needs, the program still ends, and the lost
// counts are reported.
// RUN: %ended env LLVM_PROFILE_FILE=locked DEVPROF_SYNC_MS=300 %preload ./plain locked > locked.out 2> locked.err
// RUN: FileCheck %s --check-prefix=LOCKED < locked.out
// RUN: FileCheck %s --check-prefix=MESSAGE < locked.err
// The message may be written to a pipe that nobody reads.
// RUN: python3 %inputs/nobody-reads.py env LLVM_PROFILE_FILE=unread DEVPROF_SYNC_MS=300 %preload ./plain locked | FileCheck %s --check-prefix=UNREAD
// UNREAD: signal SIGABRT
// LOCKED:      signal SIGABRT
// LOCKED-NEXT: in time
// MESSAGE: devprof: a signal ends the process, and device counters could not be saved within 300 ms: the thread that received it may hold a lock that a drain needs
//
// A child that was forked while HIP was in use ends at once and writes nothing.
// RUN: %ended env LLVM_PROFILE_FILE=fork-%%p %preload ./plain fork 2> fork.err | FileCheck %s --check-prefix=FORK
// RUN: not grep ^devprof: fork.err
// RUN: ls | grep -c gfx1100.fork | FileCheck %s --check-prefix=ONE
// FORK: exit 0
// ONE: {{^}}1{{$}}
//
// LLVM 23's runtime writes no device profile in any of these cases.
// RUN: %hip_cxx %pgo %exact -O2 %s -o llvm
// RUN: %if llvm-runtime %{ bash -euc 'for kind in abort throw term int hup quick_exit _exit segv kill; do %ended env LLVM_PROFILE_FILE=llvm-$kind ./llvm $kind; done' | FileCheck %s --check-prefix=LLVM %}
// RUN: not bash -c 'ls gfx1100*llvm-*'
// LLVM-COUNT-5: signal
// LLVM: exit 3
// LLVM: exit 3
// LLVM: signal SIGSEGV
// LLVM: signal SIGKILL
#include "check.h"
#include "profile.h"
#include <pthread.h>
#include <signal.h>
#include <stdexcept>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// A malloc with a lock that the program can hold.
static pthread_mutex_t heap = PTHREAD_MUTEX_INITIALIZER;
extern "C" void *__libc_malloc(size_t);
extern "C" void *malloc(size_t size) {
    pthread_mutex_lock(&heap);
    void *memory = __libc_malloc(size);
    pthread_mutex_unlock(&heap);
    return memory;
}

__global__ void kernel(int *out) { out[threadIdx.x] = 1; }

static bool is(const char *kind, const char *name) { return !strcmp(kind, name); }

static void own(int) {
    (void)!write(1, "own handler\n", 12);
    _exit(4);
}

static struct sigaction before;
static void chained(int signal, siginfo_t *info, void *context) {
    (void)!write(1, "own handler\n", 12);
    if (before.sa_flags & SA_SIGINFO)
        before.sa_sigaction(signal, info, context);
    _exit(6);
}

// Prints whether the program that exec started has a handler for SIGTERM or SIGABRT.
static int caught() {
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    unsigned long long mask = ~0ull;
    while (fgets(line, sizeof line, status))
        sscanf(line, "SigCgt: %llx", &mask);
    printf("SigCgt %s\n", mask & (1 << (SIGTERM - 1) | 1 << (SIGABRT - 1)) ? "a signal of this program" : "no signal of this program");
    return 0;
}

int main(int, char **argv) {
    const char *kind = argv[1];
    if (is(kind, "caught"))
        return caught();
    // The tests may have been started with these signals ignored.
    signal(SIGINT, SIG_DFL);
    signal(SIGHUP, SIG_DFL);
    if (is(kind, "own-first"))
        signal(SIGTERM, own);
    if (is(kind, "ignored"))
        signal(SIGTERM, SIG_IGN);
    int *out = device_ints(64);
    kernel<<<1, 64>>>(out);
    CHECK(hipDeviceSynchronize());
    if (is(kind, "own-later"))
        signal(SIGTERM, own);
    if (is(kind, "chained")) {
        struct sigaction action = {};
        action.sa_sigaction = chained;
        action.sa_flags = SA_SIGINFO;
        sigaction(SIGTERM, &action, &before);
    }
    if (const char *snapshot = getenv("SNAPSHOT"))
        wait_for_count(snapshot, 64);
    if (is(kind, "abort"))
        abort();
    if (is(kind, "throw"))
        throw std::runtime_error("uncaught");
    if (is(kind, "int") || is(kind, "hup"))
        kill(getpid(), is(kind, "int") ? SIGINT : SIGHUP);
    if (is(kind, "term") || is(kind, "chained") || is(kind, "ignored") || is(kind, "own-first") || is(kind, "own-later"))
        kill(getpid(), SIGTERM);
    if (is(kind, "ignored"))
        _exit(5);
    if (is(kind, "quick_exit"))
        quick_exit(3);
    if (is(kind, "_exit"))
        _exit(3);
    if (is(kind, "segv"))
        *(volatile int *)8 = 1;
    if (is(kind, "kill"))
        kill(getpid(), SIGKILL);
    if (is(kind, "exec"))
        execl(argv[0], argv[0], "caught", NULL);
    if (is(kind, "locked")) {
        pthread_mutex_lock(&heap);
        abort();
    }
    if (is(kind, "fork")) {
        pid_t child = fork();
        if (child == 0) {
            raise(SIGTERM);
            _exit(1);
        }
        int status;
        return !(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
    }
    sleep(100); // until the signal arrives
    return 9;
}
