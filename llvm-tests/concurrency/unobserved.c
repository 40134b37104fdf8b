// Threads load and unload code objects while another one collects, resets and ends the process. devprof cannot observe them,
// because they call HSA's functions directly. No code object is unloaded while devprof reads it or writes to it. Counts of a code
// object that stays loaded are exact.
//
// REQUIRES: gfx1100, model, sim
// RUN: %clang -O1 -Wall -I%inputs %s -o a %take_devprof %devprof_a -lhsa-runtime64
// RUN: %on_rocr LLVM_PROFILE_FILE=rocr.profraw %{timeout} ./a %fixtures/counted.raw11.co > rocr 2>&1 && FileCheck %s < rocr
// RUN: %counts gfx1100.rocr.profraw | FileCheck %s --check-prefix=COUNTS
// DEFINE: %{sim} = %on_sim HSA_SIM_WATCH=segments HSA_SIM_PLAN
// Copies are slow, and the number of executables changes between iterations.
// RUN: %{sim}="copy-engine * block 5; hsa_ven_amd_loader_iterate_executables * block 5" LLVM_PROFILE_FILE=sim.profraw %{timeout} ./a %fixtures/counted.raw11.co > sim 2>&1 && FileCheck %s < sim
// RUN: %counts gfx1100.sim.profraw | FileCheck %s --check-prefix=COUNTS
//
// CHECK:      devprof: cannot observe when code objects are unloaded in this process: {{.*}}
// CHECK-NEXT: ended
// CHECK-NOT:  {{.}}
// COUNTS:      {{^}}_Z6halvedj: [16, 16]{{$}}
// COUNTS-NEXT: {{^}}branch: [64, 16]{{$}}
// COUNTS-NEXT: {{^}}loop: [0, 0]{{$}}
// COUNTS-NOT:  {{.}}
//
// If HSA refuses copies, HIP is not called: it may wait for a thread that waits for devprof.
// RUN: %{sim}="hsa_amd_memory_async_copy * fail ERROR; hsa_memory_copy * fail ERROR" LLVM_PROFILE_FILE=refused.profraw %{timeout} ./a %fixtures/counted.raw11.co > refused 2>&1
// RUN: FileCheck %s --check-prefix=REFUSED < refused
// REFUSED: devprof: code object {{.*}}: hsa_amd_memory_async_copy and hsa_memory_copy failed: HSA status 0x1000
// REFUSED: ended
#define _GNU_SOURCE
#include "hsa.h"
#include <dlfcn.h>
#include <pthread.h>

enum { THREADS = 2 };

// A function of HSA, not the one that devprof defines.
#define HSA(function) ((__typeof__(&function))dlsym(library, #function))

static void *library, *bytes;
static size_t size;
static pthread_t threads[THREADS];
static int thread_count, rounds, is_over;

int __llvm_profile_hip_collect_device_data(void);
int devprof_reset_counters(void);

static hsa_executable_t load_directly(void) {
    hsa_code_object_reader_t reader;
    hsa_executable_t executable;
    CHECK(hsa_code_object_reader_create_from_memory(bytes, size, &reader));
    CHECK(hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, NULL, &executable));
    CHECK(hsa_executable_load_agent_code_object(executable, gpu, reader, NULL, NULL));
    CHECK(HSA(hsa_executable_freeze)(executable, NULL));
    CHECK(hsa_code_object_reader_destroy(reader));
    return executable;
}

// Always has a code object loaded, which is soon unloaded.
static void *reload(void *unused) {
    hsa_executable_t loaded = load_directly();
    while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE)) {
        hsa_executable_t next = load_directly();
        CHECK(HSA(hsa_executable_destroy)(loaded));
        loaded = next;
        __atomic_add_fetch(&rounds, 1, __ATOMIC_RELEASE);
    }
    return unused;
}

// Runs after devprof's exit handler, because it is registered before it.
static void end(void) {
    __atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
    for (int n = 0; n < thread_count; n++)
        pthread_join(threads[n], NULL);
    fprintf(stderr, "ended\n");
}

__attribute__((constructor(101))) static void register_end(void) { atexit(end); }

// Runs the kernel `branch` with 64 work-items, 16 of which branch.
static void run(hsa_queue_t *queue, hsa_executable_t executable) {
    char *memory = host_memory(8192);
    *(void **)memory = memory + 4096;
    hsa_signal_t done = signal_of(1);
    launch_kernel(queue, executable, "branch.kd", 64, memory, done, false);
    await(done);
}

int main(int count, char **arguments) {
    (void)count;
    library = dlopen("libhsa-runtime64.so.1", RTLD_LAZY);
    CHECK(HSA(hsa_init)());
    CHECK(hsa_iterate_agents(find_agent, NULL));
    bytes = read_file(arguments[1], &size);
    hsa_executable_t kept = load_directly();
    hsa_queue_t *queue;
    CHECK(HSA(hsa_queue_create)(gpu, 64, HSA_QUEUE_TYPE_MULTI, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue));
    for (; thread_count < THREADS; thread_count++)
        pthread_create(&threads[thread_count], NULL, reload, NULL);
    while (__atomic_load_n(&rounds, __ATOMIC_ACQUIRE) < 2 * THREADS)
        usleep(100);
    run(queue, kept);
    __llvm_profile_hip_collect_device_data();
    devprof_reset_counters();
    run(queue, kept);
}
