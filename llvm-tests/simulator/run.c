// REQUIRES: gfx1100, model, sim
// RUN: %clang -O1 -Wall -I%inputs %s -o a -lhsa-runtime64
// RUN: %on_rocr ./a %fixtures/counted.raw11.co > rocr
// RUN: %on_sim ./a %fixtures/counted.raw11.co > sim
// RUN: diff -u rocr sim && FileCheck %s < sim
//
// The simulator behaves like ROCr: signals, queues, kernels, barriers, handlers, copies.
//
// CHECK:     branch: 0 1 2 3 2 5 6 7 4
// CHECK:     loop: 0 1 3 0 1 3 0 1 3
// CHECK:     counters: 16 16 64 16 64 63
#include "packets.h"

static hsa_signal_value_t wait(hsa_signal_t signal) {
    return hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX, HSA_WAIT_STATE_BLOCKED);
}

static bool handler(hsa_signal_value_t value, void *data) {
    hsa_signal_t *handled = data;
    printf("handler: %ld\n", value);
    hsa_signal_subtract_screlease(*handled, 1);
    return false;
}

static void numbers(const char *name, const unsigned *values) {
    printf("%s:", name);
    for (int n = 0; n < 64; ++n)
        printf(" %u", values[n]);
    puts("");
}

int main(int argc, char **argv) {
    start();

    hsa_signal_t signal = signal_of(5);
    hsa_signal_add_relaxed(signal, 3);
    hsa_signal_or_relaxed(signal, 16);
    hsa_signal_and_scacq_screl(signal, 0x1c);
    hsa_signal_xor_screlease(signal, 1);
    printf("signal: %ld", hsa_signal_load_scacquire(signal));
    printf(" %ld", hsa_signal_exchange_relaxed(signal, 7));
    printf(" %ld", hsa_signal_cas_scacquire(signal, 7, 9));
    printf(" %ld", hsa_signal_cas_relaxed(signal, 7, 10));
    printf(" %ld\n", hsa_signal_load_relaxed(signal));
    printf("a wait that times out: %ld\n", hsa_signal_wait_relaxed(signal, HSA_SIGNAL_CONDITION_EQ, 0, 1000000, HSA_WAIT_STATE_BLOCKED));
    CHECK(hsa_signal_destroy(signal));

    size_t size;
    void *bytes = read_file(argv[1], &size);
    hsa_executable_t executable = load(bytes, size);
    hsa_queue_t *queue = queue_of(256, HSA_QUEUE_TYPE_MULTI);
    struct test_queue q = {queue, 0};
    printf("queue: type %u, size %u, read %lu, write %lu\n", queue->type, queue->size,
           hsa_queue_load_read_index_scacquire(queue), hsa_queue_load_write_index_relaxed(queue));
    char *memory = host_memory(1 << 16);
    unsigned *out = (unsigned *)(memory + 4096);
    *(void **)memory = out;

    // A kernel after a barrier that waits for the host.
    hsa_signal_t gate = signal_of(1), done = signal_of(2), handled = signal_of(1);
    uint64_t before, after;
    CHECK(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP, &before));
    CHECK(hsa_amd_signal_async_handler(done, HSA_SIGNAL_CONDITION_LT, 1, handler, &handled));
    wait_for(&q, HSA_PACKET_TYPE_BARRIER_AND, &gate, 1, done);
    launch_kernel(queue, executable, "branch.kd", 64, memory, done, true);
    usleep(20000);
    printf("after the gate: %ld, %u\n", hsa_signal_load_scacquire(done), out[5]);
    hsa_signal_store_screlease(gate, 0);
    wait(done);
    wait(handled);
    printf("done: %ld\n", hsa_signal_load_scacquire(done));
    numbers("branch", out);

    hsa_signal_t second = signal_of(1), third = signal_of(1);
    launch_kernel(queue, executable, "loop.kd", 64, memory, second, true);
    wait_for(&q, HSA_PACKET_TYPE_BARRIER_OR, &second, 1, third);
    printf("done: %ld %ld\n", wait(second), wait(third));
    numbers("loop", out);
    CHECK(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP, &after));
    printf("time increases: %d\n", before < after);
    printf("queue: read %lu, write %lu\n", hsa_queue_load_read_index_scacquire(queue), hsa_queue_load_write_index_relaxed(queue));

    // The counters, by a copy that waits for a signal.
    // ROCr's model mode only copies to HSA's own memory.
    uint64_t *counters = host_memory(4096), *plain = host_memory(4096);
    const char *names[] = {"__profc__Z6halvedj", "__profc_branch", "__profc_loop"};
    hsa_signal_t first = signal_of(1), copied = signal_of(3);
    for (int n = 0; n < 3; ++n) {
        void *from = (void *)symbol_u64(executable, names[n], HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS);
        CHECK(hsa_amd_memory_async_copy(counters + 2 * n, cpu, from, gpu, 16, 1, &first, copied));
    }
    hsa_signal_store_screlease(first, 0);
    printf("copies: %ld\ncounters:", wait(copied));
    for (int n = 0; n < 3; ++n)
        CHECK(hsa_memory_copy(plain + 2 * n, (void *)symbol_u64(executable, names[n], HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS), 16));
    for (int n = 0; n < 6; ++n)
        printf(" %lu", counters[n]);
    printf("\nthe same at once: %d\n", memcmp(counters, plain, 48) == 0);

    // To device memory and back.
    void *device;
    CHECK(hsa_amd_memory_pool_allocate(pool_of(gpu, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED), 100000, 0, &device));
    hsa_amd_pointer_info_t info = {.size = sizeof info};
    CHECK(hsa_amd_pointer_info((char *)device + 5000, &info, NULL, NULL, NULL));
    printf("pointer: type %d, owner %d, base %d, %zu bytes\n", info.type, info.agentOwner.handle == gpu.handle,
           info.agentBaseAddress == device, info.sizeInBytes);
    CHECK(hsa_amd_memory_fill(device, 0x01020304, 25000));
    unsigned char *back = host_memory(100000);
    CHECK(hsa_memory_copy(back, device, 100000));
    unsigned sum = 0;
    for (int n = 0; n < 100000; ++n)
        sum += back[n];
    printf("sum: %u\n", sum);
    CHECK(hsa_amd_memory_pool_free(device));

    hsa_signal_t both[] = {signal_of(1), signal_of(0)};
    hsa_signal_condition_t conditions[] = {HSA_SIGNAL_CONDITION_EQ, HSA_SIGNAL_CONDITION_EQ};
    hsa_signal_value_t values[] = {0, 0}, satisfying = -1;
    printf("any: %u", hsa_amd_signal_wait_any(2, both, conditions, values, UINT64_MAX, HSA_WAIT_STATE_BLOCKED, &satisfying));
    printf(", %ld\n", satisfying);

    // With a second argument, the program exits without unloading anything.
    if (argc > 2)
        return 0;
    CHECK(hsa_queue_destroy(queue));
    CHECK(hsa_executable_destroy(executable));
    CHECK(hsa_shut_down());
}
