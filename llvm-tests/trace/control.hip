// Control of the recording from HIP programs: on threads that launch while other threads start and stop it, after times, by
// roctx's functions, and in forked processes.
//
// RUN: %hip_cxx -O2 -I%repo/src/runtime %s -o a -pthread
//
// What was launched while the recording was on is recorded, and nothing else: the threads know its state.
// RUN: %preload DEVPROF_TRACE=threads.trace DEVPROF_TRACE_MARKERS=1 ./a threads > counts
// RUN: %trace --queues threads.trace | grep ^kernels: > found
// RUN: %trace --markers threads.trace > markers && not grep "'off'" markers
// RUN: grep -c "^mark .* 'on'" markers >> found && grep -c "^range .* 'on'" markers >> found
// RUN: diff counts found
//
// A trace that begins stopped has no dispatches, calls or markers, and its launches belong to no call. Names are recorded.
// RUN: %preload DEVPROF_TRACE=stopped.trace DEVPROF_TRACE_MARKERS=1 DEVPROF_TRACE_STOPPED=1 ./a launch
// RUN: %preload DEVPROF_TRACE=names.trace DEVPROF_TRACE_MARKERS=1 DEVPROF_TRACE_STOPPED=1 ./a mark name launch
// RUN: %trace --markers names.trace | FileCheck %s --check-prefix=NAMES
// NAMES:        recording: began stopped{{$}}
// NAMES-NEXT:   name thread ? 'named'
// NAMES-NOT:    {{.}}
// RUN: %trace --summary stopped.trace | FileCheck %s --check-prefix=NOTHING
// RUN: %trace --markers stopped.trace | FileCheck %s --check-prefix=STOPPED
// NOTHING:      calls=0 dispatches=0 without-call=0
// NOTHING-NEXT: threads=0 dropped=0 closed=1
// NOTHING-NOT:  {{.}}
// STOPPED:      recording: began stopped{{$}}
// STOPPED-NOT:  {{.}}
//
// The program starts it before HSA is initialized.
// RUN: %preload DEVPROF_TRACE=early.trace DEVPROF_TRACE_MARKERS=1 DEVPROF_TRACE_STOPPED=1 DEVPROF_TRACE_START_AFTER=3600000 ./a start launch
// RUN: %trace --calls early.trace | FileCheck %s --check-prefix=LAUNCH
// RUN: %trace --markers early.trace | FileCheck %s --check-prefix=EARLY
// LAUNCH:     hipLaunchKernel 0 _Z2onPi
// LAUNCH-NOT: {{.}}
// EARLY:      recording: began on{{$}}
// EARLY-NEXT: mark thread=1 'launch'
// EARLY-NOT:  {{.}}
//
// After a time. The program waits until the trace says that the recording has started or stopped.
// RUN: %preload DEVPROF_TRACE=after.trace DEVPROF_TRACE_START_AFTER=1 ./a wait=2 launch
// RUN: %trace --calls after.trace | FileCheck %s --check-prefix=LAUNCH
// RUN: %trace --markers --in-recording after.trace | FileCheck %s --check-prefix=AFTER
// RUN: %preload DEVPROF_TRACE=later.trace DEVPROF_TRACE_START_AFTER=3600000 ./a launch start launch stop launch
// RUN: %trace --calls later.trace | FileCheck %s --check-prefix=LAUNCH
// RUN: %trace --markers --in-recording later.trace | FileCheck %s --check-prefix=LATER
// RUN: %preload DEVPROF_TRACE=canceled.trace DEVPROF_TRACE_START_AFTER=200 ./a stop sleep launch
// RUN: %trace --markers canceled.trace | FileCheck %s --check-prefix=STOPPED
// RUN: %preload DEVPROF_TRACE=duration.trace DEVPROF_TRACE_DURATION=1 ./a wait=2 launch start wait=4 launch
// RUN: %trace --summary duration.trace | FileCheck %s --check-prefix=NOTHING
// RUN: %trace --markers duration.trace | FileCheck %s --check-prefix=DURATION
// RUN: %preload DEVPROF_TRACE=long.trace DEVPROF_TRACE_DURATION=3600000 ./a launch stop
// RUN: %trace --calls long.trace | FileCheck %s --check-prefix=LAUNCH
// RUN: %preload DEVPROF_TRACE=both.trace DEVPROF_TRACE_START_AFTER=1 DEVPROF_TRACE_DURATION=1 ./a wait=3 launch
// RUN: %trace --markers both.trace | FileCheck %s --check-prefix=BOTH
// RUN: %preload DEVPROF_TRACE=every.trace DEVPROF_TRACE_START_AFTER=1 DEVPROF_TRACE_DURATION=1 DEVPROF_TRACE_EVERY=3 ./a wait=6 stop sleep launch
// RUN: %trace --markers every.trace | FileCheck %s --check-prefix=EVERY
// RUN: %preload DEVPROF_TRACE=rare.trace DEVPROF_TRACE_DURATION=1 DEVPROF_TRACE_EVERY=3600000 ./a wait=2 launch
// RUN: %trace --summary rare.trace | FileCheck %s --check-prefix=NOTHING
// EVERY:    recording: began stopped{{( start stop){2,}$}}
// AFTER:    recording: began stopped start{{$}}
// LATER:    recording: began stopped start stop{{$}}
// DURATION: recording: began on stop start stop{{$}}
// BOTH:     recording: began stopped start stop{{$}}
//
// roctx's functions control any trace, and return 0.
// RUN: %preload DEVPROF_TRACE=roctx.trace ./a pause launch resume launch pause launch
// RUN: %trace --calls roctx.trace | FileCheck %s --check-prefix=LAUNCH
// RUN: %trace --markers --in-recording roctx.trace | FileCheck %s --check-prefix=ROCTX
// ROCTX:     recording: began stopped start stop{{$}}
// ROCTX-NOT: {{.}}
//
// A child that is forked before HSA is initialized has its own trace and its own state. One that is forked later has no
// effect on the parent's trace.
// RUN: %preload DEVPROF_TRACE=%t/fork.%%p.trace DEVPROF_TRACE_MARKERS=1 ./a mark fork=stop,mark,start,mark,launch launch fork=stop,mark,flush,start,stop launch
// RUN: sh -ec 'for trace in fork.*.trace; do %trace --markers $trace; %trace --calls $trace; done' | sort | uniq -c | FileCheck %s --check-prefix=FORK
// FORK:      {{^ *}}3 hipLaunchKernel 0 _Z2onPi
// FORK-NEXT: {{^ *}}3 mark thread=1 'launch'
// FORK-NEXT: {{^ *}}2 mark thread=1 'mark'
// FORK-NEXT: {{^ *}}2 recording: began on{{$}}
#define DEVPROF_OPTIONAL
#include "check.h"
#include "devprof.h"
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

extern "C" {
__attribute__((weak)) void roctxMarkA(const char *message);
__attribute__((weak)) int roctxRangePushA(const char *message);
__attribute__((weak)) int roctxRangePop(void);
__attribute__((weak)) int roctxNameOsThread(const char *name);
__attribute__((weak)) int roctxProfilerPause(uint64_t thread);
__attribute__((weak)) int roctxProfilerResume(uint64_t thread);
}

__global__ void on(int *out) { atomicAdd(out, 1); }
__global__ void off(int *out) { atomicAdd(out, 1); }

static void is_zero(int status) {
    if (status != 0)
        abort();
}

// The number of records of starts and stops in this process's trace.
static int switches() {
    FILE *file = fopen(getenv("DEVPROF_TRACE"), "rb");
    if (!file)
        return 0;
    unsigned char record[128];
    int count = 0;
    fseek(file, 4096, SEEK_SET);
    while (fread(record, 1, sizeof record, file) == sizeof record)
        count += record[4] == 12;
    fclose(file);
    return count;
}

static void threads(int *out) {
    // Otherwise the launching threads can keep the writer out until they end.
    static pthread_rwlock_t lock = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP;
    static bool is_on = true, is_done = false;
    static int launched[2];
    std::vector<std::thread> threads;
    for (int n = 0; n < 3; n++)
        threads.emplace_back([=] {
            hipStream_t stream;
            CHECK(hipStreamCreate(&stream));
            for (int launch = 0; launch < 600; launch++) {
                pthread_rwlock_rdlock(&lock);
                bool was_on = is_on;
                roctxRangePushA(was_on ? "on" : "off");
                roctxMarkA(was_on ? "on" : "off");
                if (was_on)
                    on<<<1, 1, 0, stream>>>(out);
                else
                    off<<<1, 1, 0, stream>>>(out);
                __atomic_add_fetch(&launched[was_on], 1, __ATOMIC_RELAXED);
                if (launch % 2)
                    roctxRangePop();
                pthread_rwlock_unlock(&lock);
                // A range that ends later, in any state.
                if (launch % 2 == 0)
                    roctxRangePop();
                if (launch % 50 == 0)
                    CHECK(hipStreamSynchronize(stream));
            }
            CHECK(hipStreamSynchronize(stream));
        });
    std::thread control([] {
        while (!__atomic_load_n(&is_done, __ATOMIC_RELAXED)) {
            pthread_rwlock_wrlock(&lock);
            is_zero(is_on ? devprof_trace_stop() : devprof_trace_start());
            is_on = !is_on;
            pthread_rwlock_unlock(&lock);
            usleep(100);
        }
    });
    // Calls that change nothing, and flushes at any time.
    std::thread flush([] {
        while (!__atomic_load_n(&is_done, __ATOMIC_RELAXED)) {
            pthread_rwlock_rdlock(&lock);
            is_zero(is_on ? devprof_trace_start() : devprof_trace_stop());
            pthread_rwlock_unlock(&lock);
            is_zero(devprof_trace_flush());
        }
    });
    for (auto &thread : threads)
        thread.join();
    __atomic_store_n(&is_done, true, __ATOMIC_RELAXED);
    control.join();
    flush.join();
    printf("kernels: _Z2onPi %d\n%d\n%d\n", launched[1], launched[1], launched[1]);
}

static void run(const char *step, int *&out);

static void in_child(const char *steps) {
    pid_t child = fork();
    if (child == 0) {
        int *out = NULL;
        char *list = strdup(steps), *rest;
        for (char *step = strtok_r(list, ",", &rest); step; step = strtok_r(NULL, ",", &rest))
            run(step, out);
        // HIP cannot be used in a child that was forked after its initialization, which is the second one.
        if (out)
            exit(0);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    is_zero(status);
}

static void run(const char *step, int *&out) {
    bool needs_hip = !strcmp(step, "launch") || !strcmp(step, "threads") || !strncmp(step, "wait=", 5);
    if (needs_hip && !out)
        CHECK(hipHostMalloc((void **)&out, sizeof *out, 0));
    if (!strcmp(step, "start"))
        is_zero(devprof_trace_start());
    else if (!strcmp(step, "stop"))
        is_zero(devprof_trace_stop());
    else if (!strcmp(step, "flush"))
        is_zero(devprof_trace_flush());
    else if (!strcmp(step, "pause"))
        is_zero(roctxProfilerPause(0));
    else if (!strcmp(step, "resume"))
        is_zero(roctxProfilerResume(0));
    else if (!strcmp(step, "mark"))
        roctxMarkA("mark");
    else if (!strcmp(step, "name"))
        is_zero(roctxNameOsThread("named"));
    else if (!strcmp(step, "sleep")) {
        CHECK(hipInit(0));
        usleep(500 * 1000);
    } else if (!strcmp(step, "launch")) {
        roctxMarkA("launch");
        on<<<1, 1>>>(out);
        CHECK(hipDeviceSynchronize());
    } else if (!strcmp(step, "threads"))
        threads(out);
    else if (!strncmp(step, "fork=", 5))
        in_child(step + 5);
    else if (!strncmp(step, "wait=", 5))
        for (int n = 0; switches() < atoi(step + 5); n++) {
            if (n > 60000)
                abort();
            usleep(1000);
        }
}

int main(int argc, char **argv) {
    int *out = NULL;
    for (int n = 1; n < argc; n++)
        run(argv[n], out);
}
