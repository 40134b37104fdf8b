// With DEVPROF_SNAPSHOT_MS the files are complete at every moment, and have every launch soon. The profile of a process is
// read in a loop while the process launches, pauses until the profile has all launches, and launches again, and the process
// is killed at a random moment, 12 times. Counts never decrease.
//
// REQUIRES: gfx1100
// RUN: %hip_cxx %device_pgo %exact -O2 -c %s -o a.o
// RUN: %hip_cxx --hip-link a.o -o plain
// RUN: %hip_cxx --hip-link a.o -o linked %take_devprof %devprof_a
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
// RUN: %hip_cxx -O2 --offload-host-only -DHOST -c %s -o host.o && %hip_cxx --hip-link host.o -o host
// RUN: env DEVPROF_SNAPSHOT_MS=1 %preload ./host modules 2> modules.err
// RUN: not grep ^devprof: modules.err
// RUN: ls | grep -c profraw | FileCheck %s --check-prefix=ONE
// ONE: {{^}}1{{$}}
// RUN: %counts gfx1100.default.profraw | FileCheck %s --check-prefix=MODULES
// RUN: %profraw gfx1100.default.profraw | FileCheck %s --check-prefix=RECORD
// MODULES: {{^}}_Z6kernelPi: [96000]{{$}}
// RECORD: record 0: {{.*}} wave size 32
//
// A value that is not a number is reported.
// RUN: env DEVPROF_SNAPSHOT_MS=soon %preload ./plain once 2>&1 | FileCheck %s --check-prefix=BAD
// RUN: env DEVPROF_SNAPSHOT_MS=0 %preload ./plain once 2>&1 | FileCheck %s --check-prefix=BAD
// BAD: devprof: DEVPROF_SNAPSHOT_MS={{soon|0}}: not a valid number of milliseconds; snapshots disabled
#include "check.h"
#include "profile.h"
#include <string.h>
#include <sys/stat.h>
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

// While a file "pause" exists: writes the number of launches to a file, and waits.
static void pause_after(unsigned long launches) {
    if (access("pause", F_OK) != 0)
        return;
    FILE *file = fopen("launches.new", "w");
    if (!file || fprintf(file, "%lu\n", launches) < 0 || fclose(file) || rename("launches.new", "launches"))
        abort();
    while (access("pause", F_OK) == 0)
        usleep(1000);
}

// When the profile was last written. Its inode would not show this, because inodes are reused.
static unsigned long written() {
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
            pause_after(n);
        }
    launch(out);
    if (!strcmp(argv[1], "idle")) {
        // A snapshot reads the records before the counters. One during the first kernel may get its count, but not the wave
        // size that the kernel also wrote: then the next one writes the file again. The second kernel only counts.
        wait_for_count("gfx1100.default.profraw", 64);
        launch(out);
        wait_for_count("gfx1100.default.profraw", 128);
        unsigned long first = written();
        usleep(500000); // 250 snapshots
        if (written() != first)
            return 3;
        launch(out);
        wait_for_count("gfx1100.default.profraw", 192);
        return 0;
    }
    if (!strcmp(argv[1], "modules"))
        for (int round = 0; round < 60; round++) {
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
