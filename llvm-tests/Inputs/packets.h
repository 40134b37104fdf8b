// Shared by the HSA programs that write packets: queues that are used in every way that HSA allows.
//
// The LDS size of each dispatch is its number in its queue (modulo 1000), so that a trace shows whether each dispatch
// is recorded once and in order. The kernel's profile counters show the program how many dispatches ran.
#pragma once

#include "hsa.h"
#include <pthread.h>
#include <sched.h>

// A queue's packets are numbered in the order in which they are written.
struct test_queue {
    hsa_queue_t *queue;
    uint64_t dispatches;
};

static hsa_executable_t code;
static uint64_t kernel_object;
static char *arguments;

// Starts HSA and loads a code object with the kernels of fixtures/counted.hip.
static inline void begin(const char *file) {
    start();
    size_t size;
    void *bytes = read_file(file, &size);
    code = load(bytes, size);
    kernel_object = symbol_u64(code, "branch.kd", HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT);
    arguments = host_memory(8192);
    *(void **)arguments = arguments + 4096;
}

static const hsa_signal_t no_signal = {0};

// Waits until the ring has free slots for `count` packets from `index` on.
static inline void wait_for_slots(hsa_queue_t *queue, uint64_t index, uint64_t count) {
    while (index + count - hsa_queue_load_read_index_scacquire(queue) > queue->size)
        sched_yield();
}

static inline hsa_kernel_dispatch_packet_t dispatch_packet(uint64_t number, hsa_signal_t done) {
    hsa_kernel_dispatch_packet_t packet = {0};
    packet.setup = 1;
    packet.workgroup_size_x = packet.grid_size_x = 64;
    packet.workgroup_size_y = packet.workgroup_size_z = packet.grid_size_y = packet.grid_size_z = 1;
    packet.group_segment_size = number % 1000;
    packet.kernel_object = kernel_object;
    packet.kernarg_address = arguments;
    packet.completion_signal = done;
    return packet;
}

static inline void put_dispatch(hsa_queue_t *queue, uint64_t index, uint64_t number, hsa_signal_t done, bool barrier) {
    hsa_kernel_dispatch_packet_t packet = dispatch_packet(number, done);
    put(queue, index, &packet, header_of(HSA_PACKET_TYPE_KERNEL_DISPATCH, barrier));
}

// One dispatch, with a doorbell ring.
static inline void dispatch(struct test_queue *q, hsa_signal_t done, bool barrier) {
    uint64_t index = hsa_queue_add_write_index_scacq_screl(q->queue, 1);
    wait_for_slots(q->queue, index, 1);
    put_dispatch(q->queue, index, q->dispatches++, done, barrier);
    ring(q->queue, index);
}

// A packet with the barrier bit, with a doorbell ring.
static inline void put_next(struct test_queue *q, void *packet, int type) {
    uint64_t index = hsa_queue_add_write_index_scacq_screl(q->queue, 1);
    wait_for_slots(q->queue, index, 1);
    put(q->queue, index, packet, header_of(type, true));
    ring(q->queue, index);
}

static inline void wait_for(struct test_queue *q, int type, const hsa_signal_t *on, int count, hsa_signal_t done) {
    hsa_barrier_and_packet_t packet = {0};
    for (int n = 0; n < count; ++n)
        packet.dep_signal[n] = on[n];
    packet.completion_signal = done;
    put_next(q, &packet, type);
}

// Waits until all packets that are now in the queue are complete.
static inline void drain(struct test_queue *q) {
    hsa_signal_t done = signal_of(1);
    wait_for(q, HSA_PACKET_TYPE_BARRIER_AND, NULL, 0, done);
    await(done);
    CHECK(hsa_signal_destroy(done));
}

// How many dispatches ran, as counted by the kernel: its entry counts one per work-item.
static inline uint64_t ran(void) {
    uint64_t counters[2];
    read_counters(code, "__profc_branch", counters, 2);
    return counters[0] / 64;
}

static inline void end(void) {
    CHECK(hsa_executable_destroy(code));
    CHECK(hsa_shut_down());
}
