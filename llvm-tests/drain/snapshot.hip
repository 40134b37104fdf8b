// With DEVPROF_SNAPSHOT_MS the files are never much older than that, and whole at any instant: one process is read in a
// loop while it launches and is killed at moments that nobody chose, 12 times; each count grows only, and has what was
// launched half a second before (many times a snapshot's age on a machine with nothing else to do).
//
// RUN: rm -rf %t && mkdir %t && cd %t
// RUN: %hip_cxx %device_pgo %exact -O2 %s -o plain
// RUN: %hip_cxx %device_pgo %exact -O2 %s -o linked %take_devprof %devprof_a
// DEFINE: %{watch} = python3 %S/Inputs/watch.py
// RUN: %{watch} 8 env DEVPROF_SNAPSHOT_MS=2 %preload ./plain launch | FileCheck %s
// RUN: %{watch} 4 env DEVPROF_SNAPSHOT_MS=5 ./linked launch | FileCheck %s
// CHECK: whole and new enough
//
// A snapshot in which nothing has changed writes nothing; one in which something has writes.
// RUN: rm -f gfx1100*
// RUN: env DEVPROF_SNAPSHOT_MS=2 %preload ./plain idle
//
// Modules that come and go under snapshots: each launch is counted once. HIP lets some of them go later, so that several
// are loaded at once, and one file has all of them. What the device writes when a function first runs is in files that were begun before.
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
// What is no number is said.
// RUN: env DEVPROF_SNAPSHOT_MS=soon %preload ./plain once 2>&1 | FileCheck %s --check-prefix=BAD
// RUN: env DEVPROF_SNAPSHOT_MS=0 %preload ./plain once 2>&1 | FileCheck %s --check-prefix=BAD
// BAD: devprof: DEVPROF_SNAPSHOT_MS={{soon|0}} is no number of milliseconds; no snapshots are made
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

// What was launched until when, for whoever looks after the program was killed.
static void note(unsigned long launches) {
    static int file = open("progress", O_CREAT | O_TRUNC | O_WRONLY | O_APPEND, 0600);
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    unsigned long entry[2] = {launches, now.tv_sec * 1000000000ul + now.tv_nsec};
    (void)!write(file, entry, sizeof entry);
}

// When, for an inode may be used again.
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
        // On a machine that has much else to do a snapshot waits for its turn.
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
