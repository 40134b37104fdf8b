// Threads of a program without HIP load, run and destroy executables while others collect and another one initializes
// HSA and shuts it down in turn. HSA is shut down completely, again and again, while others collect (once in ROCr's
// model mode, where it cannot be initialized again). Every sum is exact, no loss is reported, and nothing hangs.
//
// REQUIRES: gfx1100, model, sim
// RUN: %clang -O2 -Wall -I%inputs -I%S/Inputs %s -o a -lhsa-runtime64
// RUN: %clang -O2 -Wall -I%inputs -I%S/Inputs -DARCHIVE %s -o b %devprof_a -lhsa-runtime64
//
// RUN: %on_rocr LLVM_PROFILE_FILE=rocr/x.profraw %preload ./a together rocr %fixtures/counted.raw11.co 2>&1 | FileCheck %s --allow-empty --check-prefix=MESSAGE
// RUN: %counts rocr/gfx1100.x.profraw | FileCheck %s
// RUN: %on_rocr LLVM_PROFILE_FILE=rocr-archive/x.profraw ./b together rocr-archive %fixtures/counted.raw11.co 2>&1 | FileCheck %s --allow-empty --check-prefix=MESSAGE
// RUN: %counts rocr-archive/gfx1100*.x.profraw | FileCheck %s
// RUN: %on_sim LLVM_PROFILE_FILE=sim/x.profraw LD_PRELOAD=%devprof_so ./a together sim %fixtures/counted.raw11.co 2>&1 | FileCheck %s --allow-empty --check-prefix=MESSAGE
// RUN: %counts sim/gfx1100.x.profraw | FileCheck %s
// RUN: %on_sim LLVM_PROFILE_FILE=traced/x.profraw DEVPROF_TRACE=trace LD_PRELOAD=%devprof_so ./a together traced %fixtures/counted.raw11.co 2>&1 | FileCheck %s --allow-empty --check-prefix=MESSAGE
// RUN: %counts traced/gfx1100.x.profraw | FileCheck %s
//
// RUN: %on_rocr LLVM_PROFILE_FILE=down-rocr/x.profraw %preload ./a down down-rocr %fixtures/counted.raw11.co 1 2>&1 | FileCheck %s --allow-empty --check-prefix=MESSAGE
// RUN: %counts down-rocr/gfx1100.x.profraw | FileCheck %s
// RUN: %on_sim LLVM_PROFILE_FILE=down-sim/x.profraw LD_PRELOAD=%devprof_so ./a down down-sim %fixtures/counted.raw11.co 20 2>&1 | FileCheck %s --allow-empty --check-prefix=MESSAGE
// RUN: %counts down-sim/gfx1100.x.profraw | FileCheck %s
// RUN: %on_rocr LLVM_PROFILE_FILE=down-archive/x.profraw ./b down down-archive %fixtures/counted.raw11.co 1 2>&1 | FileCheck %s --allow-empty --check-prefix=MESSAGE
// RUN: %counts down-archive/gfx1100.x.profraw | FileCheck %s
// RUN: %on_sim LLVM_PROFILE_FILE=down-both/x.profraw LD_PRELOAD=%devprof_so ./b down down-both %fixtures/counted.raw11.co 20 2>&1 | FileCheck %s --allow-empty --check-prefix=MESSAGE
// RUN: %counts down-both/gfx1100.x.profraw | FileCheck %s
//
// MESSAGE-NOT: {{^devprof:|hsa_}}
//
// 60 runs with 64 work-items each.
// CHECK:     {{^}}_Z6halvedj: [960, 960]{{$}}
// CHECK-NEXT: {{^}}branch: [3840, 960]{{$}}
// CHECK-NEXT: {{^}}loop: [0, 0]{{$}}
#include "hsa.h"
#include "check-profiles.h"
#include <dlfcn.h>
#include <pthread.h>

static void *bytes;
static size_t size;
static const char *profiles;
static int over;

// Loads the code object, runs a kernel once and, if requested, destroys the executable.
static void run(int destroy) {
    hsa_queue_t *queue;
    hsa_signal_t done;
    hsa_executable_t executable = load(bytes, size);
    char *memory = host_memory(8192);
    *(void **)memory = memory + 4096;
    CHECK(hsa_queue_create(gpu, 64, HSA_QUEUE_TYPE_MULTI, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue));
    CHECK(hsa_signal_create(1, 0, NULL, &done));
    uint64_t index = hsa_queue_add_write_index_relaxed(queue, 1);
    hsa_kernel_dispatch_packet_t *packet = (hsa_kernel_dispatch_packet_t *)queue->base_address + index % queue->size;
    memset((char *)packet + 4, 0, sizeof *packet - 4);
    packet->workgroup_size_x = 64, packet->workgroup_size_y = packet->workgroup_size_z = 1;
    packet->grid_size_x = 64, packet->grid_size_y = packet->grid_size_z = 1;
    packet->private_segment_size = symbol_u64(executable, "branch.kd", HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE);
    packet->group_segment_size = symbol_u64(executable, "branch.kd", HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE);
    packet->kernel_object = symbol_u64(executable, "branch.kd", HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT);
    packet->kernarg_address = memory;
    packet->completion_signal = done;
    uint16_t header = HSA_PACKET_TYPE_KERNEL_DISPATCH << HSA_PACKET_HEADER_TYPE |
                      HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
                      HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE;
    __atomic_store_n((uint32_t *)packet, header | 1u << (16 + HSA_KERNEL_DISPATCH_PACKET_SETUP_DIMENSIONS), __ATOMIC_RELEASE);
    hsa_signal_store_screlease(queue->doorbell_signal, index);
    hsa_signal_wait_scacquire(done, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX, HSA_WAIT_STATE_BLOCKED);
    CHECK(hsa_queue_destroy(queue));
    CHECK(hsa_signal_destroy(done));
    if (destroy)
        CHECK(hsa_executable_destroy(executable));
    CHECK(hsa_amd_memory_pool_free(memory));
}

static void *rounds(void *count) {
    for (int n = 0; n < *(int *)count; n++)
        run(1);
    return NULL;
}

int __llvm_profile_hip_collect_device_data(void);

static void *collect_all(void *unused) {
#ifdef ARCHIVE
    int (*collect)(void) = __llvm_profile_hip_collect_device_data;
#else
    int (*collect)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "__llvm_profile_hip_collect_device_data");
#endif
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED))
        if (collect()) {
            fprintf(stderr, "devprof: a collect call failed\n");
            _exit(1);
        }
    return unused;
}

static void *init_and_shut_down(void *unused) {
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED)) {
        CHECK(hsa_init());
        CHECK(hsa_shut_down());
    }
    return unused;
}

static void *check_files(void *unused) {
    while (!__atomic_load_n(&over, __ATOMIC_RELAXED))
        check_profiles(profiles);
    return unused;
}

int main(int argc, char **argv) {
    // Ends a run that hangs.
    alarm(300);
    profiles = argv[2];
    bytes = read_file(argv[3], &size);
    int together = !strcmp(argv[1], "together"), count = 15;
    pthread_t threads[9];
    void *(*others[])(void *) = {check_files, collect_all, collect_all, collect_all, init_and_shut_down};
    if (together)
        start();
    for (int n = 0; n < 4 + together; n++)
        pthread_create(&threads[n], NULL, others[n], NULL);
    if (together) {
        for (int n = 5; n < 9; n++)
            pthread_create(&threads[n], NULL, rounds, &count);
        for (int n = 5; n < 9; n++)
            pthread_join(threads[n], NULL);
    } else {
        for (int turn = 0, turns = atoi(argv[4]); turn < turns; turn++) {
            cpu.handle = gpu.handle = 0;
            start();
            for (int n = 0; n < 60 / turns; n++)
                run(n % 2);
            CHECK(hsa_shut_down());
        }
    }
    __atomic_store_n(&over, 1, __ATOMIC_RELAXED);
    for (int n = 0; n < 4 + together; n++)
        pthread_join(threads[n], NULL);
}
