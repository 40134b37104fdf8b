// With DEVPROF_SNAPSHOT_MS the files are complete at every moment and not much older than this time. The profile of a
// process is read in a loop while the process launches, and the process is killed at a random moment, 12 times. Counts
// never decrease, and include all launches up to half a second before (on an idle machine, snapshots are much newer).
//
// REQUIRES: gfx1100
// RUN: %hip_cxx %device_pgo %exact -O2 %s -o plain
// RUN: %hip_cxx %device_pgo %exact -O2 %s -o linked %take_devprof %devprof_a
// DEFINE: %{watch} = python3 %S/Inputs/watch.py
// RUN: %{watch} 8 env DEVPROF_SNAPSHOT_MS=2 %preload ./plain launch | FileCheck %s
// RUN: %{watch} 4 env DEVPROF_SNAPSHOT_MS=5 ./linked launch | FileCheck %s
// CHECK: complete and recent
//
// A snapshot only writes if a count has changed.
// RUN: rm -f gfx1100*
// RUN: env DEVPROF_SNAPSHOT_MS=2 %preload ./plain idle
//
// Modules that are loaded and unloaded under snapshots: each launch is counted once. HIP unloads some of them later,
// so several are loaded at once, and one file has all of them. The wave size, which the device writes when a function
// first runs, also gets into files that were first written before.
// RUN: rm -f gfx1100*
// RUN: %hip_cxx %device_pgo %exact -O2 %module -DMODULE %s -o module.hsaco
// RUN: %hip_cxx -O2 -DHOST %s -o host
// RUN: env DEVPROF_SNAPSHOT_MS=1 %preload ./host modules 2> modules.err
// RUN: not grep ^devprof: modules.err
// RUN: ls | grep -c profraw | FileCheck %s --check-prefix=ONE
// ONE: {{^}}1{{$}}
// RUN: %counts gfx1100.default.profraw | FileCheck %s --check-prefix=MODULES
// RUN: %profraw gfx1100.default.profraw | FileCheck %s --check-prefix=RECORD
// MODULES: {{^}}_Z6kernelPi: [320000]{{$}}
// RECORD: record 0: {{.*}} wave size 32
//
// A value that is not a number is reported.
// RUN: env DEVPROF_SNAPSHOT_MS=soon %preload ./plain once 2>&1 | FileCheck %s --check-prefix=BAD
// RUN: env DEVPROF_SNAPSHOT_MS=0 %preload ./plain once 2>&1 | FileCheck %s --check-prefix=BAD
// BAD: devprof: DEVPROF_SNAPSHOT_MS={{soon|0}}: not a valid number of milliseconds; snapshots disabled
#include "check.h"
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifdef HOST
static void launch(int *) {}
#else
__global__ void kernel(int *out) { out[threadIdx.x] = 1; }

static void launch(int *out) {
    kernel<<<1, 64>>>(out);
    CHECK(hipDeviceSynchronize());
}
#endif

// How many launches were complete at which time, for the reader after the kill.
static void note(unsigned long launches) {
    static int file = open("progress", O_CREAT | O_TRUNC | O_WRONLY | O_APPEND, 0600);
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    unsigned long entry[2] = {launches, now.tv_sec * 1000000000ul + now.tv_nsec};
    (void)!write(file, entry, sizeof entry);
}

// When the profile was last written. Its inode would not show this, because inodes are reused.
static unsigned long written() {
    usleep(500000);
    struct stat file;
    if (stat("gfx1100.default.profraw", &file) != 0)
        exit(2);
    return file.st_mtim.tv_sec * 1000000000ul + file.st_mtim.tv_nsec;
}

int main(int, char **argv) {
    int *out = device_ints(64);
    if (!strcmp(argv[1], "launch"))
        for (unsigned long n = 1;; n++) {
            launch(out);
            note(n);
        }
    launch(out);
    if (!strcmp(argv[1], "idle")) {
        unsigned long first = written();
        if (written() != first)
            return 3;
        launch(out);
        // On a busy machine a snapshot may be delayed.
        for (int tries = 0; tries < 20; tries++)
            if (written() != first)
                return 0;
        return 4;
    }
    if (!strcmp(argv[1], "modules"))
        for (int round = 0; round < 200; round++) {
            hipModule_t module;
            hipFunction_t function;
            CHECK(hipModuleLoad(&module, "module.hsaco"));
            CHECK(hipModuleGetFunction(&function, module, "_Z6kernelPi"));
            void *arguments[] = {&out};
            if (round == 0)
                usleep(100000);
            for (int n = 0; n < 25; n++)
                CHECK(hipModuleLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, 0, arguments, nullptr));
            CHECK(hipDeviceSynchronize());
            CHECK(hipModuleUnload(module));
        }
}
