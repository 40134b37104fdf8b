// A GPU model for HSA_MODEL_LIB that completes every packet without executing it, to measure what a launch costs the
// host. One thread processes all queues. It polls them every POLL_NS and takes all packets: if it followed the write
// index closely, each packet's cache line would move between the processors while it is being written. It runs only on
// the last processor, which the launching threads do not use (measure.h), because a real GPU uses no core of the host.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { POLL_NS = 50000, MAX_QUEUES = 512, PACKET_SIZE = 64, QUEUE_TYPE_COMPUTE_AQL = 2 };
enum { VENDOR_SPECIFIC, INVALID, KERNEL_DISPATCH, BARRIER_AND, AGENT_DISPATCH, BARRIER_OR };

// ROCr's model interface 0.4. Addresses are GPU addresses: add the aperture's base to access them.
struct queue_info {
    uint64_t ring, write_index, read_index;
    uint64_t *doorbell;
    uint32_t ring_size, type;
};

struct signal { // amd_signal_t
    int64_t kind, value;
    uint64_t event_mailbox;
    uint32_t event_id, reserved;
    uint64_t start, end;
};

struct barrier {
    uint16_t header, reserved0;
    uint32_t reserved1;
    uint64_t dependencies[5], reserved2, completion;
};

struct queue {
    struct queue_info info;
    uint64_t next;
};

static char *aperture;
static struct queue *queues[MAX_QUEUES];
static int slots; // used entries of `queues`; some of them may be free again
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void (*set_event)(void *, unsigned);
static void *set_event_data;

static void *host_address(uint64_t address) { return aperture + address; }

static void fail(const char *what) {
    fprintf(stderr, "silent GPU: %s\n", what);
    abort();
}

// GPU clock ticks of 10 ns, as on gfx11.
static uint64_t ticks(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 100000000ull + time.tv_nsec / 10;
}

static void complete(uint64_t handle) {
    struct signal *signal = host_address(handle);
    // The program may destroy the signal as soon as its value has changed.
    uint64_t mailbox = signal->event_mailbox;
    uint32_t event = signal->event_id;
    signal->start = ticks();
    signal->end = signal->start + 1;
    __atomic_fetch_sub(&signal->value, 1, __ATOMIC_RELEASE);
    if (mailbox)
        *(uint64_t *)host_address(mailbox) = event;
    if (event)
        set_event(set_event_data, event);
}

static bool is_met(const struct barrier *barrier, bool all) {
    int awaited = 0, met = 0;
    for (int n = 0; n < 5; n++)
        if (barrier->dependencies[n]) {
            struct signal *signal = host_address(barrier->dependencies[n]);
            awaited++;
            met += __atomic_load_n(&signal->value, __ATOMIC_ACQUIRE) == 0;
        }
    return all ? met == awaited : met > 0 || awaited == 0;
}

static void process(struct queue *queue) {
    const struct queue_info *info = &queue->info;
    uint64_t *written = host_address(info->write_index), *read = host_address(info->read_index);
    while (queue->next != __atomic_load_n(written, __ATOMIC_ACQUIRE)) {
        struct barrier *packet = host_address(info->ring + queue->next * PACKET_SIZE % info->ring_size);
        uint8_t type = __atomic_load_n(&packet->header, __ATOMIC_ACQUIRE);
        if (type == INVALID)
            return;
        if (type > BARRIER_OR || type == AGENT_DISPATCH)
            fail("unknown packet type");
        if ((type == BARRIER_AND || type == BARRIER_OR) && !is_met(packet, type == BARRIER_AND))
            return;
        uint64_t completion = packet->completion;
        __atomic_store_n(&packet->header, INVALID, __ATOMIC_RELEASE);
        __atomic_store_n(read, ++queue->next, __ATOMIC_RELEASE);
        if (completion)
            complete(completion);
    }
}

static void *run(void *unused) {
    prctl(PR_SET_NAME, "silent-gpu");
    prctl(PR_SET_TIMERSLACK, 1000);
    cpu_set_t last;
    CPU_ZERO(&last);
    CPU_SET(sysconf(_SC_NPROCESSORS_ONLN) - 1, &last);
    if (sched_setaffinity(0, sizeof last, &last))
        fail("cannot set the processor affinity");
    for (;;) {
        pthread_mutex_lock(&lock);
        for (int n = 0; n < slots; n++)
            if (queues[n])
                process(queues[n]);
        pthread_mutex_unlock(&lock);
        nanosleep(&(struct timespec){.tv_nsec = POLL_NS}, NULL);
    }
    return unused;
}

static void *create(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, NULL))
        fail("cannot start a thread");
    pthread_detach(thread);
    return queues;
}

static void *register_queue(void *model, const struct queue_info *info) {
    (void)model;
    if (info->type != QUEUE_TYPE_COMPUTE_AQL)
        fail("not an AQL queue: set HSA_ENABLE_SDMA=0");
    struct queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        fail("out of memory");
    queue->info = *info;
    pthread_mutex_lock(&lock);
    int n = 0;
    while (n < slots && queues[n])
        n++;
    if (n == MAX_QUEUES)
        fail("too many queues");
    queues[n] = queue;
    slots = n == slots ? n + 1 : slots;
    pthread_mutex_unlock(&lock);
    return queue;
}

static void destroy_queue(void *model, void *queue) {
    (void)model;
    pthread_mutex_lock(&lock);
    for (int n = 0; n < slots; n++)
        if (queues[n] == queue)
            queues[n] = NULL;
    pthread_mutex_unlock(&lock);
    free(queue);
}

static void set_aperture(void *model, void *base, uint64_t size) { (void)model, (void)size, aperture = base; }
static void set_set_event(void *model, void (*function)(void *, unsigned), void *data) {
    (void)model;
    set_event = function;
    set_event_data = data;
}
static void destroy(void *model) { (void)model; }
static void memory_changed(void *model, void *address, uint64_t size) { (void)model, (void)address, (void)size; }
static void memory_new(void *model, void *address, uint64_t size, uint32_t flags) { (void)flags, memory_changed(model, address, size); }
static void events_unused(void *model, const void *function, void *data) { (void)function, memory_changed(model, data, 0); }

const void *get_hsakmt_model_functions(void) {
    static const struct {
        uint32_t major, minor;
        void *functions[10];
    } interface = {0, 4, {create, destroy, set_aperture, memory_new, memory_changed, events_unused, events_unused, register_queue, set_set_event, destroy_queue}};
    return &interface;
}
