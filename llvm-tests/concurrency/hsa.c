// Threads of a program without HIP load, run and destroy executables while others collect and another one initializes
// HSA and shuts it down in turn. HSA is shut down completely, again and again, while others collect (once in ROCr's
// model mode, where it cannot be initialized again). Every sum is exact, no loss is reported, and nothing hangs.
//
// REQUIRES: gfx1100, model, sim
// RUN: %clang -O2 -Wall -I%inputs -I%S/Inputs %s -o a -lhsa-runtime64
// RUN: %clang -O2 -Wall -I%inputs -I%S/Inputs -DARCHIVE %s -o b %devprof_a -lhsa-runtime64
//
// RUN: %on_rocr LLVM_PROFILE_FILE=rocr/x.profraw %preload ./a together rocr %fixtures/counted.raw11.co 5 2>&1 | FileCheck %s --allow-empty --check-prefix=MESSAGE
// RUN: %counts rocr/gfx1100.x.profraw | FileCheck %s --check-prefix=ROCR
// RUN: %on_rocr LLVM_PROFILE_FILE=rocr-archive/x.profraw ./b together rocr-archive %fixtures/counted.raw11.co 5 2>&1 | FileCheck %s --allow-empty --check-prefix=MESSAGE
// RUN: %counts rocr-archive/gfx1100*.x.profraw | FileCheck %s --check-prefix=ROCR
// RUN: %on_sim LLVM_PROFILE_FILE=sim/x.profraw LD_PRELOAD=%devprof_so ./a together sim %fixtures/counted.raw11.co 15 2>&1 | FileCheck %s --allow-empty --check-prefix=MESSAGE
// RUN: %counts sim/gfx1100.x.profraw | FileCheck %s
// RUN: %on_sim LLVM_PROFILE_FILE=traced/x.profraw DEVPROF_TRACE=trace LD_PRELOAD=%devprof_so ./a together traced %fixtures/counted.raw11.co 15 2>&1 | FileCheck %s --allow-empty --check-prefix=MESSAGE
// RUN: %counts traced/gfx1100.x.profraw | FileCheck %s
//
// RUN: %on_rocr LLVM_PROFILE_FILE=down-rocr/x.profraw %preload ./a down down-rocr %fixtures/counted.raw11.co 1 20 2>&1 | FileCheck %s --allow-empty --check-prefix=MESSAGE
// RUN: %counts down-rocr/gfx1100.x.profraw | FileCheck %s --check-prefix=ROCR
// RUN: %on_sim LLVM_PROFILE_FILE=down-sim/x.profraw LD_PRELOAD=%devprof_so ./a down down-sim %fixtures/counted.raw11.co 20 3 2>&1 | FileCheck %s --allow-empty --check-prefix=MESSAGE
// RUN: %counts down-sim/gfx1100.x.profraw | FileCheck %s
// RUN: %on_rocr LLVM_PROFILE_FILE=down-archive/x.profraw ./b down down-archive %fixtures/counted.raw11.co 1 20 2>&1 | FileCheck %s --allow-empty --check-prefix=MESSAGE
// RUN: %counts down-archive/gfx1100.x.profraw | FileCheck %s --check-prefix=ROCR
// RUN: %on_sim LLVM_PROFILE_FILE=down-both/x.profraw LD_PRELOAD=%devprof_so ./b down down-both %fixtures/counted.raw11.co 20 3 2>&1 | FileCheck %s --allow-empty --check-prefix=MESSAGE
// RUN: %counts down-both/gfx1100.x.profraw | FileCheck %s
//
// MESSAGE-NOT: {{^devprof:|hsa_}}
//
// 60 runs with 64 work-items each. ROCr's model mode needs a hundred times as long as the simulator: 20 runs.
// CHECK:     {{^}}_Z6halvedj: [960, 960]{{$}}
// CHECK-NEXT: {{^}}branch: [3840, 960]{{$}}
// CHECK-NEXT: {{^}}loop: [0, 0]{{$}}
// ROCR:     {{^}}_Z6halvedj: [320, 320]{{$}}
// ROCR-NEXT: {{^}}branch: [1280, 320]{{$}}
// ROCR-NEXT: {{^}}loop: [0, 0]{{$}}
#include "hsa.h"
#include "check-profiles.h"
#include "steps.h"
#include <dlfcn.h>

static void *bytes;
static size_t size;
static const char *profiles;

// Loads the code object, runs a kernel once and, if requested, destroys the executable.
static void run(int destroy) {
    hsa_executable_t executable = load(bytes, size);
    step();
    hsa_queue_t *queue = queue_of(64, HSA_QUEUE_TYPE_MULTI);
    hsa_signal_t done = signal_of(1);
    char *memory = host_memory(8192);
    *(void **)memory = memory + 4096;
    launch_kernel(queue, executable, "branch.kd", 64, memory, done, false);
    step();
    await(done);
    step();
    CHECK(hsa_queue_destroy(queue));
    CHECK(hsa_signal_destroy(done));
    if (destroy)
        CHECK(hsa_executable_destroy(executable));
    step();
    CHECK(hsa_amd_memory_pool_free(memory));
}

static void *rounds(void *count) {
    for (int n = 0; n < *(int *)count; n++)
        run(1);
    return NULL;
}

int __llvm_profile_hip_collect_device_data(void);

// Collects, and reads the files while the other threads write them.
static void *collect_all(void *unused) {
#ifdef ARCHIVE
    int (*collect)(void) = __llvm_profile_hip_collect_device_data;
#else
    int (*collect)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "__llvm_profile_hip_collect_device_data");
#endif
    for (long seen = 0; wait_for_step(&seen); check_profiles(profiles))
        if (collect()) {
            fprintf(stderr, "devprof: a collect call failed\n");
            _exit(1);
        }
    return unused;
}

static void *init_and_shut_down(void *unused) {
    for (long seen = 0; wait_for_step(&seen);) {
        CHECK(hsa_init());
        CHECK(hsa_shut_down());
    }
    return unused;
}

int main(int argc, char **argv) {
    // Ends a run that hangs.
    alarm(300);
    profiles = argv[2];
    bytes = read_file(argv[3], &size);
    // Runs of each of four threads; or turns, and runs in each.
    int together = !strcmp(argv[1], "together"), count = atoi(argv[4]);
    pthread_t threads[8];
    void *(*others[])(void *) = {collect_all, collect_all, collect_all, init_and_shut_down};
    if (together)
        start();
    for (int n = 0; n < 3 + together; n++)
        pthread_create(&threads[n], NULL, others[n], NULL);
    if (together) {
        for (int n = 4; n < 8; n++)
            pthread_create(&threads[n], NULL, rounds, &count);
        for (int n = 4; n < 8; n++)
            pthread_join(threads[n], NULL);
    } else {
        for (int turn = 0; turn < count; turn++) {
            cpu.handle = gpu.handle = 0;
            start();
            for (int n = 0; n < atoi(argv[5]); n++)
                run(n % 5);
            step();
            CHECK(hsa_shut_down());
        }
    }
    last_step();
    for (int n = 0; n < 3 + together; n++)
        pthread_join(threads[n], NULL);
}
