// devprof run: the program ends as it would without devprof, and the summary describes what was collected.
//
// REQUIRES: debian, model, root
// RUN: %hip_cxx %device_pgo %exact -O2 -c %s -o a.o && %hip_cxx a.o -o a -lamdhip64
//
// Each run gets its own directory. The GPU model is set up by the environment, or by --model.
// RUN: %devprof run ./a 2> first.err
// RUN: %counts devprof-1/gfx1100.*.profraw | FileCheck %s --check-prefix=COUNTS
// RUN: FileCheck %s < first.err
// RUN: env -u HSA_MODEL_LIB -u HSA_MODEL_TOPOLOGY -u HSA_ENABLE_INTERRUPT -u HSA_ENABLE_SDMA -u LD_PRELOAD %devprof run --model --trace a.trace -- ./a 2> model.err
// RUN: FileCheck %s --check-prefixes=CHECK2,TRACE,NEXT2 < model.err
// RUN: %trace --summary a.trace
// COUNTS: {{^}}_Z6kernelPi: [64]{{$}}
// CHECK:      {{^}}devprof: 1 profile in devprof-1: 1 code object, 1 function (1 ran), 64 counts in all{{$}}
// CHECK-NEXT: {{^}}devprof: next: devprof report ./a --profile devprof-1{{$}}
// CHECK-NOT:  {{.}}
// CHECK2:     devprof: 1 profile in devprof-2: 1 code object
// TRACE-NEXT: {{^}}devprof: the trace a.trace: 1 dispatch of 1 kernel{{$}}
// NEXT2-NEXT: devprof: next: devprof report ./a --profile devprof-2 --trace a.trace{{$}}
// NEXT2-NEXT: devprof: or: devprof stats a.trace{{$}}
//
// The options of a trace are environment variables.
// RUN: %devprof run --trace /all.trace --trace-api --trace-copies --trace-markers --trace-stopped --trace-start-after 5 --trace-duration 6s --trace-every 1m env 2> env.err | grep DEVPROF_TRACE | sort | FileCheck %s --check-prefix=VARIABLES
// RUN: env DEVPROF_TRACE_API=1 DEVPROF_TRACE_DURATION=7 %devprof run --trace /some.trace env 2>> env.err | grep DEVPROF_TRACE | sort | FileCheck %s --check-prefix=KEPT
// VARIABLES:      {{^}}DEVPROF_TRACE=/all.trace{{$}}
// VARIABLES-NEXT: {{^}}DEVPROF_TRACE_API=1{{$}}
// VARIABLES-NEXT: {{^}}DEVPROF_TRACE_COPIES=1{{$}}
// VARIABLES-NEXT: {{^}}DEVPROF_TRACE_DURATION=6000{{$}}
// VARIABLES-NEXT: {{^}}DEVPROF_TRACE_EVERY=60000{{$}}
// VARIABLES-NEXT: {{^}}DEVPROF_TRACE_MARKERS=1{{$}}
// VARIABLES-NEXT: {{^}}DEVPROF_TRACE_START_AFTER=5{{$}}
// VARIABLES-NEXT: {{^}}DEVPROF_TRACE_STOPPED=1{{$}}
// VARIABLES-NOT:  {{.}}
// KEPT:      {{^}}DEVPROF_TRACE=/some.trace{{$}}
// KEPT-NEXT: {{^}}DEVPROF_TRACE_API=1{{$}}
// KEPT-NEXT: {{^}}DEVPROF_TRACE_DURATION=7{{$}}
// KEPT-NOT:  {{.}}
//
// devprof ends with the same exit status or signal as the program.
// RUN: %ended %devprof run -q ./a status 7 2> status.err | FileCheck %s --check-prefix=STATUS
// RUN: %ended %devprof run -q ./a signal 9 2>> status.err | FileCheck %s --check-prefix=KILLED
// RUN: %ended %devprof run -q ./a signal 15 2>> status.err | FileCheck %s --check-prefix=TERMINATED
// RUN: not grep ^devprof: status.err
// RUN: %ended %devprof run ./none 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: touch data && %ended %devprof run ./data 2>&1 | FileCheck %s --check-prefix=DATA
// STATUS: exit 7
// KILLED: signal SIGKILL
// TERMINATED: signal SIGTERM
// NONE: devprof: cannot start ./none: No such file
// NONE: exit 127
// DATA: devprof: cannot start ./data: Permission denied
// DATA: exit 126
// Only runs that wrote a file leave a directory. The run that was killed by SIGKILL wrote none.
// RUN: ls -d devprof-* | FileCheck %s --check-prefix=DIRECTORIES
// DIRECTORIES:      devprof-1
// DIRECTORIES-NEXT: devprof-2
// DIRECTORIES-NEXT: devprof-3
// DIRECTORIES-NEXT: devprof-4
// DIRECTORIES-NOT:  {{.}}
//
// Several processes: one file for all, or one for each. A warning is printed if processes overwrite each other's file, or
// if the file existed before the run. Each process has its own trace.
// RUN: %devprof run --trace several.trace sh -c './a & ./a & wait; ./a' 2> pool.err
// RUN: %counts devprof-5/gfx1100.*.profraw | FileCheck %s --check-prefix=SUM
// RUN: FileCheck %s --check-prefix=POOL < pool.err
// RUN: ls several.trace several.trace.* | count 3
// RUN: env LLVM_PROFILE_FILE=own/%%p.profraw %devprof run sh -c './a; ./a' 2>&1 | FileCheck %s --check-prefix=OWN
// RUN: %ended %devprof run --profile over/x.profraw sh -c './a; ./a' > over.out 2>&1
// RUN: FileCheck %s --check-prefix=OVER < over.out
// RUN: %devprof run --profile devprof-5/%%m.profraw ./a 2>&1 | FileCheck %s --check-prefix=OLDER
// SUM: {{^}}_Z6kernelPi: [192]{{$}}
// POOL:      devprof: 1 profile of 3 processes in devprof-5: 1 code object, 1 function (1 ran), 192 counts in all
// POOL-NEXT: devprof: the trace several.trace: 1 dispatch
// POOL-NEXT: devprof: the trace several.trace.{{[0-9]+}}: 1 dispatch
// POOL-NEXT: devprof: the trace several.trace.{{[0-9]+}}: 1 dispatch
// POOL-NEXT: devprof: next: devprof report a --profile devprof-5 --trace several.trace --trace several.trace.{{[0-9]+}} --trace several.trace.{{[0-9]+}}{{$}}
// POOL-NEXT: devprof: or: devprof stats several.trace several.trace.{{[0-9]+}} several.trace.{{[0-9]+}}{{$}}
// POOL-NOT:  {{.}}
// OWN: devprof: 2 profiles of 2 processes in own: 1 code object, 1 function (1 ran), 128 counts
// OVER: devprof: 2 processes overwrote over/gfx1100.x.profraw, {{.*}}--profile
// OVER: exit 3
// OLDER: 256 counts in all
// OLDER: devprof: devprof-5/gfx1100.{{[0-9_]+}}.profraw existed before this run, and %m added to it
//
// A directory for the profiles, whose name has no extension, or a slash at its end. They are required, or not.
// RUN: %devprof run --profile new --require-profile ./a 2>&1 | FileCheck %s --check-prefix=NEW
// RUN: %devprof run --profile new/ ./a 2>&1 | FileCheck %s --check-prefix=NEW-AGAIN
// RUN: %ended %devprof run -q --require-profile true 2>&1 | FileCheck %s --check-prefix=REQUIRED
// RUN: %ended %devprof run -q --require-profile --profile new/ ./a status 7 2>&1 | FileCheck %s --check-prefix=STATUS
// RUN: %ended %devprof run -q --profile gone/ sh -c 'touch gone; ./a status 7' 2>&1 | FileCheck %s --check-prefix=STATUS
// NEW: devprof: 1 profile in new: 1 code object, 1 function (1 ran), 64 counts
// NEW: devprof: next: devprof report ./a --profile new{{$}}
// NEW-AGAIN: devprof: 1 profile in new: 1 code object, 1 function (1 ran), 128 counts
// REQUIRED: devprof: no profile was written, and --require-profile requires one
// REQUIRED: exit 1
//
// Lost counters, and reasons for which nothing was collected.
// RUN: rm gone && %ended %devprof run --profile gone/ sh -c 'touch gone; ./a' > lost.out 2>&1
// RUN: FileCheck %s --check-prefix=LOST < lost.out
// RUN: rm gone && %ended %devprof run -q --profile gone/ sh -c 'touch gone; ./a' > quiet.out 2>&1
// RUN: FileCheck %s --check-prefix=QUIET < quiet.out
// RUN: %ended %devprof run -q --profile over/y.profraw sh -c './a; ./a' > quiet-over.out 2>&1
// RUN: FileCheck %s --check-prefix=QUIET-OVER < quiet-over.out
// RUN: %devprof run true 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: %hip_cxx -O2 %s -o uncounted && %devprof run ./uncounted 2>&1 | FileCheck %s --check-prefix=UNCOUNTED
// RUN: %if other-users %{ chmod 777 . && cp /bin/true suid && chown 4242 suid && chmod 4755 suid && %as_user 4243 %devprof run ./suid 2>&1 | FileCheck %s --check-prefix=SUID %}
// RUN: %devprof run /sbin/ldconfig -p 2>&1 >/dev/null | FileCheck %s --check-prefix=STATIC
// RUN: %hip_cxx a.o -o linked %take_devprof %devprof_a -lamdhip64
// RUN: %devprof run ./linked 2>&1 | FileCheck %s --check-prefix=LINKED
// LOST: devprof: lost the counters of a code object on gfx1100: {{.*}}gone
// LOST: devprof: lost: the counters of a code object on gfx1100: {{.*}}gone
// LOST: devprof: no counters were collected: see above
// LOST: exit 3
// QUIET:      devprof: lost the counters of a code object on gfx1100: {{.*}}gone
// QUIET:      devprof: lost: the counters of a code object on gfx1100: {{.*}}gone
// QUIET-NOT:  {{^}}devprof:
// QUIET:      exit 3
// QUIET-OVER:     devprof: 2 processes overwrote over/gfx1100.y.profraw, {{.*}}--profile
// QUIET-OVER-NOT: {{^}}devprof:
// QUIET-OVER:     exit 3
// NOTHING: devprof: no counters were collected: no device code was loaded (1 process ran)
// UNCOUNTED: devprof: no counters were collected: the program's code object is not instrumented
// UNCOUNTED: devprof: next: devprof flags --coverage
// SUID: devprof: no counters were collected: ./suid runs with more privileges than its caller
// STATIC: devprof: no counters were collected: /sbin/ldconfig is statically linked
// LINKED: devprof: 1 profile in devprof-6: 1 code object, 1 function (1 ran), 64 counts in all
//
// LLVM's own collector writes the same counts to files with other names. They are removed from a directory that was
// created for the run, and reported in other directories.
// RUN: %hip_cxx %pgo %exact -O2 %s -o both && %devprof run ./both 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: ls devprof-7/*.profraw | count 2 && %counts devprof-7/gfx1100.*.profraw | FileCheck %s --check-prefix=COUNTS
// With %m, LLVM's collector sometimes writes the device profile over the host profile: this one is written without it.
// RUN: env LLVM_PROFILE_FILE=llvm.profraw ./both && mkdir old
// RUN: %devprof run --profile old/%%m.profraw sh -c './a; cp gfx1100.llvm.profraw old' 2>&1 | FileCheck %s --check-prefix=OLD-DIRECTORY
// BOTH-NOT: duplicates
// BOTH: devprof: 1 profile in devprof-7
// OLD-DIRECTORY: devprof: old/gfx1100.llvm.profraw duplicates devprof's counts: LLVM's own collector
//
// A path that the dynamic linker would split at its space, and libraries that the user already preloads.
// RUN: mkdir "a b" && cp %devprof_so "a b/" && gcc -shared -fPIC -o other.so -x c /dev/null
// RUN: env LD_PRELOAD=%{preloaded}:%t/other.so HSA_TOOLS_LIB=libnone.so %devprof run --library "a b/libdevprof.so" sh -c 'echo "$LD_PRELOAD $HSA_TOOLS_LIB" > list; exec ./a' 2>&1 | FileCheck %s --check-prefix=SPACE
// RUN: FileCheck %s --check-prefix=LIST < list
// RUN: not %devprof run --library none.so ./a 2>&1 | FileCheck %s --check-prefix=NO-LIBRARY
// RUN: not %devprof run --library . ./a 2>&1 | FileCheck %s --check-prefix=DIRECTORY
// SPACE: devprof: 1 profile in devprof-8
// LIST: /libdevprof.so:{{.*}}/other.so libnone.so {{[^ ]*}}/libdevprof.so
// NO-LIBRARY: devprof: cannot find the library none.so
// DIRECTORY: devprof: cannot find the library . (--library, DEVPROF_LIBRARY): not a file
//
// A directory or a file that cannot be written is found before the program runs.
// RUN: touch file && %ended %devprof run --profile file/%%p.profraw touch ran 2>&1 | FileCheck %s --check-prefix=UNWRITABLE
// RUN: %ended %devprof run --trace file/x.trace touch ran 2>&1 | FileCheck %s --check-prefix=UNWRITABLE-TRACE
// RUN: not ls ran devprof-9
// UNWRITABLE: devprof: cannot write profiles to {{.*}}/file: not a directory; choose another location with --profile
// UNWRITABLE: exit 1
// UNWRITABLE-TRACE: devprof: cannot write the trace to {{.*}}/file: not a directory; choose another location with --trace
// UNWRITABLE-TRACE: exit 1
//
// A program that needs a missing library, and one with gcc's AddressSanitizer.
// RUN: gcc -shared -fPIC -o libmissing.so -x c /dev/null && echo 'int main() {}' > main.c && gcc main.c -o needy -Wl,--no-as-needed -L. -lmissing && rm libmissing.so
// RUN: %ended %devprof run ./needy 2>&1 | FileCheck %s --check-prefix=NEEDY
// RUN: gcc -fsanitize=address main.c -o asan && env -u LD_PRELOAD %ended %devprof run ./asan 2>&1 | FileCheck %s --check-prefix=ASAN
// RUN: env -u LD_PRELOAD %devprof run sh -c ./asan 2>&1 | FileCheck %s --check-prefix=ASAN-CHILD
// NEEDY: libmissing.so
// NEEDY: devprof: no counters were collected: ./needy was not started (status 127): the dynamic linker prints the reason, such as a missing library
// NEEDY: exit 127
// ASAN-NOT:   ASan
// ASAN:       devprof: no counters were collected: no device code was loaded (1 process ran)
// ASAN:       exit 0
// ASAN-CHILD: devprof: no counters were collected: no device code was loaded (2 processes ran)
//
// Statistics after the run, and a trace of two processes in one exported file. Nothing else stays.
// RUN: mkdir exported && %devprof run -q --profile exported/ --stats ./a > stats.out 2> stats.err && not grep ^devprof: stats.err
// RUN: FileCheck %s --check-prefix=STATS < stats.out
// RUN: %devprof run --profile exported/ --trace traces/x.json --stats --trace-api sh -c './a; ./a' > export.out 2> export.err
// RUN: FileCheck %s --check-prefix=EXPORT < export.err && FileCheck %s --check-prefix=STATS2 < export.out
// RUN: grep -c '"type":"dispatch"' traces/x.json | FileCheck %s --check-prefix=DISPATCHES
// RUN: %devprof run -q --profile exported/ --trace traces/x.pftrace ./a && ls -A exported traces | FileCheck %s --check-prefix=EXPORTED
// RUN: %ended %devprof run -q --stats true > no-stats.out 2>&1
// RUN: FileCheck %s --check-prefix=NO-STATS < no-stats.out
// RUN: %ended %devprof run -q --profile exported/ --trace traces/x.xplane.pb sh -c './a; ./a' > kept.out 2>&1
// RUN: FileCheck %s --check-prefix=KEPT-TRACES < kept.out && ls traces/.devprof-run-*/ | count 2
// STATS:      Calls {{.*}} Kernel
// STATS-NEXT: 1 {{.*}} kernel(int*)
// STATS-NOT:  {{.}}
// STATS2:     2 {{.*}} kernel(int*)
// STATS2:     API CALLS
// EXPORT:     devprof: traces/x.json: 2 traces, 2 dispatches
// EXPORT-NOT: the trace
// EXPORT:     devprof: next: devprof report a --profile exported{{$}}
// EXPORT-NOT: stats
// DISPATCHES: 2
// EXPORTED:      exported:
// EXPORTED-NEXT: {{^}}.devprof-lock
// EXPORTED-NEXT: 1.runlog
// EXPORTED-NEXT: 2.runlog
// EXPORTED-NEXT: 3.runlog
// EXPORTED-NEXT: gfx1100.
// EXPORTED:      traces:
// EXPORTED-NEXT: x.json
// EXPORTED-NEXT: x.pftrace
// EXPORTED-NOT:  {{.}}
// NO-STATS: devprof: no trace was recorded
// NO-STATS: exit 1
// KEPT-TRACES: devprof: XProf reads one file per process: for several traces, name a log directory
// KEPT-TRACES: devprof: the trace that was not exported is in {{.*}}traces/.devprof-run-
// KEPT-TRACES: exit 1
//
// Signals from a terminal reach the program once, and those from kill are forwarded. devprof stops when the program does.
// RUN: python3 %S/Inputs/signals.py %devprof ./a | FileCheck %s --check-prefix=SIGNALS
// SIGNALS:      kill: SIGHUP SIGINT SIGQUIT SIGTERM SIGUSR1 SIGWINCH
// SIGNALS-NEXT: terminal: SIGINT SIGINT SIGINT SIGQUIT SIGWINCH
// SIGNALS-NEXT: group: SIGUSR2 first
// SIGNALS-NEXT: stopped and continued: SIGCONT
// SIGNALS-NEXT: to devprof: signal SIGTERM
#include "check.h"
#include <atomic>
#include <signal.h>
#include <string>
#include <unistd.h>

__global__ void kernel(int *out) { out[threadIdx.x] = threadIdx.x; }

static std::atomic<int> got[NSIG];

static void count(int signal) { got[signal]++; }

int main(int argc, char **argv) {
    std::string what = argc > 1 ? argv[1] : "";
    if (what == "signal" && atoi(argv[2]) == SIGKILL)
        raise(SIGKILL);
    if (what != "idle") {
        kernel<<<1, 64>>>(device_ints(64));
        CHECK(hipDeviceSynchronize());
    }
    if (what == "status")
        exit(atoi(argv[2]));
    if (what == "signal")
        raise(atoi(argv[2]));
    if (what == "default") {
        puts("ready");
        fflush(stdout);
        for (;;)
            pause();
    }
    if (what == "wait" || what == "idle") {
        const int all[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT};
        for (int signal : all)
            ::signal(signal, count);
        puts("ready");
        fflush(stdout);
        // SIGUSR2 ends the loop.
        for (int printed[NSIG] = {}; !printed[SIGUSR2]; usleep(1000))
            for (int signal : all)
                for (; printed[signal] < got[signal]; printed[signal]++, fflush(stdout))
                    printf("\ngot %d\n", signal);
    }
}
