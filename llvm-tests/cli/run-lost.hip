// `devprof run` says why there are no counts, or not all.
//
// REQUIRES: debian, gfx1100, llvm-runtime, model
// RUN: %hip_cxx %device_pgo %exact -O2 %s -o a
//
// A signal, or _exit: the process ends without exit handlers. Snapshots have a part of the counts.
// RUN: %ended %devprof run ./a kill 2>&1 | FileCheck %s --check-prefix=KILL
// RUN: %ended %devprof run sh -c './a kill; exit 3' 2>&1 | FileCheck %s --check-prefix=SHELL
// RUN: %ended %devprof run ./a _exit 2>&1 | FileCheck %s --check-prefix=EXIT
// RUN: %ended %devprof run -q ./a _exit 2>&1 | FileCheck %s --check-prefix=QUIET
// RUN: %ended %devprof run --snapshot 20ms ./a snapshot kill 2>&1 | FileCheck %s --check-prefix=SNAPSHOT
// KILL:          devprof: {{.*}}a was killed by SIGKILL: its counts are lost (--snapshot 1s writes profiles while a program runs)
// KILL-NEXT:     devprof: no counters were collected: see above
// KILL-NEXT:     signal SIGKILL
// SHELL:         devprof: {{.*}}a was killed, ended with _exit, or still runs: its counts are lost
// SHELL:         exit 3
// EXIT:          devprof: {{.*}}a was killed, ended with _exit, or still runs: its counts are lost
// EXIT:          exit 3
// QUIET:         devprof: {{.*}}a was killed, ended with _exit, or still runs: its counts are lost
// QUIET-NOT:     {{^}}devprof:
// QUIET:         exit 3
// SNAPSHOT:      devprof: 1 profile in devprof-[[#]]: 1 code object
// SNAPSHOT-NEXT: devprof: {{.*}}a was killed by SIGKILL: the counts since its last profile are lost
//
// No GPU; a GPU of another architecture.
// RUN: env -u HSA_MODEL_LIB -u HSA_MODEL_TOPOLOGY %ended %devprof run ./a 2>&1 | FileCheck %s --check-prefix=NO-GPU
// RUN: %hip_cxx %device_pgo %exact -O2 --no-offload-arch=gfx1100 --offload-arch=gfx90a -Xarch_device -nogpuinc %s -o other
// RUN: env -u HSA_MODEL_LIB -u HSA_MODEL_TOPOLOGY -u HSA_ENABLE_INTERRUPT -u HSA_ENABLE_SDMA -u LD_PRELOAD %ended %target/prefix/bin/devprof run --model ./other 2>&1 | FileCheck %s --check-prefix=OTHER-MODEL
// RUN: env -u HSA_MODEL_LIB -u HSA_MODEL_TOPOLOGY -u HSA_ENABLE_INTERRUPT -u HSA_ENABLE_SDMA -u LD_PRELOAD %ended %target/prefix/bin/devprof run --model ./other crash 2>&1 | FileCheck %s --check-prefix=CRASH
// RUN: %ended %devprof run ./other 2>&1 | FileCheck %s --check-prefix=OTHER
// NO-GPU: devprof: no counters were collected: no AMD GPU found
// NO-GPU: devprof: --model --arch gfx1100 runs the program on a simulated GPU
// OTHER:  devprof: no counters were collected: the instrumented device code is for gfx90a, the GPU is gfx1100: compile with --offload-arch=gfx1100{{$}}
// OTHER-MODEL: devprof: no counters were collected: the instrumented device code is for gfx90a, the GPU is gfx1100: compile with --offload-arch=gfx1100, or simulate that GPU: --model --arch gfx90a
// CRASH:  devprof: no counters were collected: the instrumented device code is for gfx90a, the GPU is gfx1100: compile
// CRASH:  signal SIGSEGV
//
// The device code is in a library that an interpreter has opened.
// RUN: %hip_cxx %device_pgo %exact -O2 -DLIBRARY -shared -fPIC %s -o libwork.so
// RUN: %clang -O2 -DINTERPRETER -x c++ %s -o interpreter -lstdc++
// RUN: %devprof run ./interpreter ./libwork.so 2>&1 | FileCheck %s --check-prefix=LIBRARY
// LIBRARY: devprof: next: devprof report libwork.so --profile devprof-[[#]]
//
// A report finds the binaries in the log of the run, also if the profiles were moved.
// RUN: %devprof run --profile logged/ ./interpreter ./libwork.so && mv logged moved
// RUN: %devprof report --profile moved | FileCheck %s --check-prefix=LOGGED
// RUN: %devprof report --profile 'moved/*.profraw' | FileCheck %s --check-prefix=LOGGED
// RUN: rm moved/1.runlog && %ended %devprof report --profile moved 2>&1 | FileCheck %s --check-prefix=NO-LOG
// LOGGED: 100 %{{.*}}kernel(int*)
// NO-LOG: name the binaries that ran; they can be left out only if `devprof run` has saved its log
// NO-LOG: exit 2
//
// LLVM's own collector is in the program, and devprof is not loaded.
// RUN: %hip_cxx %pgo %exact -O2 %s -o llvms
// RUN: %devprof run env -u HSA_TOOLS_LIB LD_PRELOAD=%{preloaded} ./llvms 2>&1 | FileCheck %s --check-prefix=LLVMS
// LLVMS: devprof: no counters were collected: no device code was loaded (1 process ran)
// LLVMS: devprof: LLVM's own collector, which is in the program, wrote devprof-[[#]]/gfx1100.{{.*}}.profraw; `devprof report` reads this as well
//
// For PGO, the next command merges the host's profile, too: the compiler takes one file for both.
// RUN: %hip_cxx -fprofile-generate %exact -O2 %s -o pgo
// RUN: %devprof run --profile both/%%p.profraw ./pgo 2>&1 | FileCheck %s --check-prefix=PGO
// PGO: devprof: next: devprof merge both -o device.profdata{{$}}
//
// The directory has profiles of another run. A pattern of names also gets a log, in which a report finds the binaries.
// RUN: %devprof run --profile both/%%p.profraw ./pgo 2>&1 | FileCheck %s --check-prefix=PGO-AGAIN
// RUN: %devprof run -q --profile mpi/%%h.%%p.profraw ./a && %devprof report --profile mpi | FileCheck %s --check-prefix=LOGGED
// PGO-AGAIN: devprof: next: devprof merge both/gfx1100.[[PID:[0-9]+]].profraw both/[[PID]].profraw -o device.profdata{{$}}
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifdef INTERPRETER
#include <dlfcn.h>

int main(int argc, char **argv) {
    void *library = dlopen(argv[argc - 1], RTLD_NOW);
    if (!library)
        return puts(dlerror()), 1;
    return ((int (*)())dlsym(library, "work"))();
}
#else
#include "kernel.h"

#ifndef __HIP_DEVICE_COMPILE__
#include <glob.h>
#include <signal.h>
#include <string>

extern "C" int work() {
    int *out;
    if (hipMalloc((void **)&out, 64 * sizeof(int)) != hipSuccess)
        return 1;
    kernel<<<1, 64>>>(out);
    return hipDeviceSynchronize() != hipSuccess;
}

#ifndef LIBRARY
// Waits until the run's directory has a profile.
static void wait_for_snapshot() {
    std::string file = getenv("LLVM_PROFILE_FILE"), all = file.substr(0, file.rfind('/')) + "/*.profraw";
    glob_t found;
    alarm(120);
    while (glob(all.c_str(), 0, nullptr, &found) != 0)
        usleep(1000);
}

int main(int argc, char **argv) {
    int failed = work();
    for (int n = 1; n < argc; n++) {
        if (!strcmp(argv[n], "kill"))
            raise(SIGKILL);
        if (!strcmp(argv[n], "crash"))
            raise(SIGSEGV);
        if (!strcmp(argv[n], "_exit"))
            _exit(0);
        if (!strcmp(argv[n], "snapshot"))
            wait_for_snapshot();
    }
    return failed;
}
#endif
#endif
#endif
