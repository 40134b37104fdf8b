// Uses queues in ways that HSA allows and that a tool between the program and ROCr could break. One scenario per run.
// Each prints what it observes, which must be the same with and without a tool.
//
//     packets CODE_OBJECT SCENARIO
#include "packets.h"
#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>

static void some(struct test_queue *q, int count) {
    for (int n = 0; n < count; ++n)
        dispatch(q, no_signal, true);
}

static void finish(struct test_queue *q) {
    drain(q);
    printf("ran: %lu\n", ran());
    CHECK(hsa_queue_destroy(q->queue));
}

// A thread fills the queue with packets that wait for a signal, and sets the signal afterwards.
static void gate(void) {
    struct test_queue q = {queue_of(64, HSA_QUEUE_TYPE_SINGLE), 0};
    hsa_signal_t closed = signal_of(1);
    for (int round = 0; round < 3; ++round) {
        hsa_signal_store_screlease(closed, 1);
        wait_for(&q, HSA_PACKET_TYPE_BARRIER_AND, &closed, 1, no_signal);
        hsa_signal_t done = signal_of(63);
        for (int n = 0; n < 63; ++n)
            dispatch(&q, done, n % 2);
        hsa_signal_store_screlease(closed, 0);
        await(done);
        CHECK(hsa_signal_destroy(done));
    }
    finish(&q);
}

// The program's own completion signals: one per dispatch, one for several, none.
static void signals(void) {
    struct test_queue q = {queue_of(64, HSA_QUEUE_TYPE_SINGLE), 0};
    hsa_signal_t shared = signal_of(100);
    hsa_signal_value_t last = 0;
    for (int n = 0; n < 100; ++n) {
        hsa_signal_t own = signal_of(1);
        dispatch(&q, own, true);
        dispatch(&q, shared, false);
        dispatch(&q, no_signal, true);
        await(own);
        // The signal is the program's again: a tool that accesses it later overwrites what is stored now.
        hsa_signal_store_screlease(own, 77);
        last = hsa_signal_load_scacquire(own);
        CHECK(hsa_signal_destroy(own));
    }
    await(shared);
    drain(&q);
    printf("ran: %lu, %ld, %ld\n", ran(), hsa_signal_load_scacquire(shared), last);
    CHECK(hsa_queue_destroy(q.queue));
}

// Queues that wait for each other's kernels.
static void across(void) {
    struct test_queue a = {queue_of(64, HSA_QUEUE_TYPE_SINGLE), 0}, b = {queue_of(128, HSA_QUEUE_TYPE_MULTI), 0};
    hsa_signal_t turn[2] = {no_signal, no_signal};
    for (int n = 0; n < 40; ++n) {
        hsa_signal_t from_a = signal_of(1), from_b = signal_of(1);
        if (n)
            wait_for(&a, n % 2 ? HSA_PACKET_TYPE_BARRIER_AND : HSA_PACKET_TYPE_BARRIER_OR, &turn[1], 1, no_signal);
        dispatch(&a, from_a, true);
        hsa_signal_t both[2] = {from_a, from_a};
        wait_for(&b, n % 3 ? HSA_PACKET_TYPE_BARRIER_AND : HSA_PACKET_TYPE_BARRIER_OR, both, 2, no_signal);
        dispatch(&b, from_b, false);
        turn[0] = from_a;
        turn[1] = from_b;
    }
    await(turn[1]);
    printf("ran: %lu, %ld %ld\n", ran(), hsa_signal_load_relaxed(turn[0]), hsa_signal_load_relaxed(turn[1]));
    CHECK(hsa_queue_destroy(a.queue));
    CHECK(hsa_queue_destroy(b.queue));
}

static hsa_queue_t *shared_queue;

static void *produce(void *data) {
    for (int n = 0; n < 250; ++n) {
        uint64_t index = hsa_queue_add_write_index_scacq_screl(shared_queue, 1);
        wait_for_slots(shared_queue, index, 1);
        put_dispatch(shared_queue, index, index, *(hsa_signal_t *)data, n % 2);
        ring(shared_queue, index);
    }
    return NULL;
}

// Four threads write to one queue.
static void threads(void) {
    shared_queue = queue_of(64, HSA_QUEUE_TYPE_MULTI);
    hsa_signal_t done = signal_of(1000);
    pthread_t thread[4];
    for (int n = 0; n < 4; ++n)
        pthread_create(&thread[n], NULL, produce, &done);
    for (int n = 0; n < 4; ++n)
        pthread_join(thread[n], NULL);
    await(done);
    printf("ran: %lu\n", ran());
    CHECK(hsa_queue_destroy(shared_queue));
}

// A queue is destroyed while its last packets wait for a signal that is never set; another queue is created and used.
static void destroyed(void) {
    for (int round = 0; round < 3; ++round) {
        struct test_queue q = {queue_of(64, HSA_QUEUE_TYPE_SINGLE), 0};
        hsa_signal_t never = signal_of(1);
        some(&q, 20);
        drain(&q);
        wait_for(&q, HSA_PACKET_TYPE_BARRIER_AND, &never, 1, no_signal);
        some(&q, 5);
        CHECK(hsa_queue_destroy(q.queue));
    }
    printf("ran: %lu\n", ran());
}

// AMD's barrier-value packets, which are vendor-specific.
static void vendor(void) {
    struct test_queue q = {queue_of(64, HSA_QUEUE_TYPE_SINGLE), 0};
    hsa_signal_t value = signal_of(1), done = signal_of(2);
    for (int n = 0; n < 2; ++n) {
        hsa_amd_barrier_value_packet_t packet = {0};
        packet.header.AmdFormat = HSA_AMD_PACKET_TYPE_BARRIER_VALUE;
        packet.signal = value;
        packet.value = 7;
        packet.mask = 0xff;
        packet.cond = HSA_SIGNAL_CONDITION_EQ;
        packet.completion_signal = done;
        put_next(&q, &packet, HSA_PACKET_TYPE_VENDOR_SPECIFIC);
        dispatch(&q, no_signal, true);
    }
    usleep(10000);
    printf("before: %ld\n", hsa_signal_load_scacquire(done));
    hsa_signal_store_screlease(value, 7);
    await(done);
    finish(&q);
}

// A packet with an unassigned type or, if it is vendor-specific, an unassigned format, with a completion signal.
static void put_unassigned(struct test_queue *q, int type, int format, hsa_signal_t done) {
    uint64_t packet[8] = {(uint64_t)format << 16, 0, 0, 0, 0, 0, 0, done.handle};
    put_next(q, packet, type);
}

// Unassigned packet types, and gfx1250's dispatch in clusters (hsa_amd_ext_kernel_dispatch_packet_t: 3 by 2 by 1
// clusters of 2 by 1 by 4 workgroups), which the simulator completes if it does not run kernels.
static void unknown(void) {
    struct test_queue q = {queue_of(64, HSA_QUEUE_TYPE_SINGLE), 0};
    hsa_signal_t done = signal_of(5 * 40);
    for (int n = 0; n < 40; ++n) {
        put_unassigned(&q, 6, 0, done);
        put_unassigned(&q, 255, 0, done);
        put_unassigned(&q, HSA_PACKET_TYPE_VENDOR_SPECIFIC, 77, done);
        dispatch(&q, n % 2 ? done : no_signal, true);
        if (n % 2 == 0)
            put_unassigned(&q, 200, 0, done);
        uint64_t packet[8] = {3ul << 16 | 64ul << 32 | 2ul << 48,
                              1 | 3ul << 32,
                              2 | 1 << 16 | 2ul << 32 | 1ul << 40 | 4ul << 48,
                              q.dispatches++ << 32,
                              kernel_object,
                              (uint64_t)arguments,
                              0,
                              done.handle};
        put_next(&q, packet, HSA_PACKET_TYPE_VENDOR_SPECIFIC);
    }
    await(done);
    drain(&q);
    printf("done: %ld\n", hsa_signal_load_scacquire(done));
    CHECK(hsa_queue_destroy(q.queue));
}

// Packet formats that cannot be executed, after a barrier packet that never completes.
static void invalid(void) {
    struct test_queue q = {queue_of(64, HSA_QUEUE_TYPE_SINGLE), 0};
    hsa_signal_t never = signal_of(1), done = signal_of(100);
    dispatch(&q, no_signal, true);
    drain(&q);
    wait_for(&q, HSA_PACKET_TYPE_BARRIER_AND, &never, 1, no_signal);
    for (int n = 0; n < 10; ++n) {
        put_unassigned(&q, HSA_PACKET_TYPE_VENDOR_SPECIFIC, 77, n % 2 ? done : no_signal);
        put_unassigned(&q, HSA_PACKET_TYPE_VENDOR_SPECIFIC, 255, done);
        dispatch(&q, no_signal, true);
    }
    usleep(10000);
    printf("ran: %lu\n", ran());
    CHECK(hsa_queue_destroy(q.queue));
}

// Hints in the lowest bits of completion signals (amd_signal_hint_t). Each kernel takes at least 5 ms by the simulator's plan.
static void hints(void) {
    enum { FORMAT_V2 = 1, ON_ZERO = 2 << 1, BINARY = 1 << 3, TIMES_ON = 1 << 4, TIMES_OFF = 2 << 4, NO_VALUE = 1 << 6 };
    static const uint64_t all[] = {0, BINARY, ON_ZERO, TIMES_ON, TIMES_OFF, BINARY | ON_ZERO | TIMES_ON};
    struct test_queue q = {queue_of(64, HSA_QUEUE_TYPE_SINGLE), 0};
    CHECK(hsa_amd_profiling_set_profiler_enabled(q.queue, 1));
    int expected = 0, right = 0;
    // Every other signal is completed by two packets.
    for (int n = 0; n < 24; ++n) {
        uint64_t hint = all[n % 6], packets = n / 6 % 2 && !(hint & BINARY) ? 2 : 1;
        hsa_signal_t own = signal_of(packets), hinted = {own.handle | hint};
        for (uint64_t m = 0; m < packets; ++m)
            dispatch(&q, hinted, true);
        await(own);
        if (hint != TIMES_OFF) {
            hsa_amd_profiling_dispatch_time_t time;
            CHECK(hsa_amd_profiling_get_dispatch_time(gpu, own, &time));
            ++expected;
            right += time.end - time.start >= 5000000;
        }
        CHECK(hsa_signal_destroy(own));
    }
    hsa_signal_t aligned;
    do
        aligned = signal_of(1);
    while (aligned.handle % 1024 != 0);
    dispatch(&q, (hsa_signal_t){aligned.handle | FORMAT_V2 | NO_VALUE}, true);
    drain(&q);
    printf("right times: %d of %d, value: %ld\n", right, expected, hsa_signal_load_scacquire(aligned));
    printf("ran: %lu\n", ran());
    CHECK(hsa_queue_destroy(q.queue));
}

// Packets that jump to three dispatches in other memory (hsa_amd_aql_ib_jump_packet_t).
static void jump(void) {
    struct test_queue q = {queue_of(64, HSA_QUEUE_TYPE_SINGLE), 0};
    hsa_queue_t target = {.base_address = host_memory(4096), .size = 64};
    for (int n = 0; n < 3; ++n)
        put_dispatch(&target, n, 0, no_signal, true);
    hsa_signal_t done = signal_of(1);
    for (int n = 0; n < 2; ++n) {
        dispatch(&q, done, true);
        await(done);
        hsa_signal_store_screlease(done, 1);
        uint64_t packet[8] = {7ul << 16 | 3ul << 32, (uint64_t)target.base_address, 0, 0, 0, 0, done.handle, 0};
        put_next(&q, packet, HSA_PACKET_TYPE_VENDOR_SPECIFIC);
        await(done);
        hsa_signal_store_screlease(done, 1);
    }
    finish(&q);
}

// The program ends in the middle of its work.
static void leave(const char *how) {
    struct test_queue q = {queue_of(64, HSA_QUEUE_TYPE_SINGLE), 0};
    some(&q, 300);
    drain(&q);
    usleep(100000);
    some(&q, 40);
    printf("left\n");
    if (!strcmp(how, "_exit"))
        _exit(3);
    if (!strcmp(how, "kill"))
        raise(SIGKILL);
    exit(4);
}

// A child that never uses HSA, and one that exits by itself.
static void forks(void) {
    struct test_queue q = {queue_of(64, HSA_QUEUE_TYPE_SINGLE), 0};
    some(&q, 50);
    drain(&q);
    for (int n = 0; n < 2; ++n) {
        fflush(stdout);
        pid_t child = fork();
        if (!child) {
            if (n)
                exit(6);
            _exit(5);
        }
        int status;
        waitpid(child, &status, 0);
        printf("child: %d\n", WEXITSTATUS(status));
    }
    some(&q, 50);
    finish(&q);
}

enum { WAITERS = 3, ROUNDS = 150 };
static pthread_barrier_t round_begins, round_ends;
static hsa_signal_t awaited;
static int handled, woken;

static bool handle(hsa_signal_value_t value, void *data) {
    (void)data;
    __atomic_fetch_add(&handled, value == 0, __ATOMIC_RELEASE);
    return false;
}

static void *wait_each_round(void *data) {
    for (int n = 0; n < ROUNDS; ++n) {
        pthread_barrier_wait(&round_begins);
        await(awaited);
        __atomic_fetch_add(&woken, 1, __ATOMIC_RELAXED);
        pthread_barrier_wait(&round_ends);
    }
    return data;
}

// Threads and a handler wait for the signal of the same dispatch, which is destroyed as soon as they have returned.
static void waiters(void) {
    struct test_queue q = {queue_of(64, HSA_QUEUE_TYPE_MULTI), 0};
    pthread_barrier_init(&round_begins, NULL, WAITERS + 1);
    pthread_barrier_init(&round_ends, NULL, WAITERS + 1);
    pthread_t threads[WAITERS];
    for (int n = 0; n < WAITERS; ++n)
        pthread_create(&threads[n], NULL, wait_each_round, NULL);
    for (int n = 0; n < ROUNDS; ++n) {
        awaited = signal_of(1);
        CHECK(hsa_amd_signal_async_handler(awaited, HSA_SIGNAL_CONDITION_LT, 1, handle, NULL));
        if (n % 2)
            pthread_barrier_wait(&round_begins);
        dispatch(&q, awaited, n % 3);
        if (n % 2 == 0)
            pthread_barrier_wait(&round_begins);
        pthread_barrier_wait(&round_ends);
        while (__atomic_load_n(&handled, __ATOMIC_ACQUIRE) <= n)
            sched_yield();
        CHECK(hsa_signal_destroy(awaited));
    }
    for (int n = 0; n < WAITERS; ++n)
        pthread_join(threads[n], NULL);
    printf("ran: %lu, handled: %d, woken: %d\n", ran(), handled, woken);
    CHECK(hsa_queue_destroy(q.queue));
}

static struct test_queue chained;

static bool next_link(hsa_signal_value_t value, void *data) {
    (void)value, (void)data;
    hsa_signal_store_relaxed(awaited, 1);
    for (int n = 0; n < 30; ++n)
        dispatch(&chained, no_signal, false);
    dispatch(&chained, awaited, true);
    return chained.dispatches < 20 * 31;
}

// The handler of a dispatch's signal, on HSA's own thread, writes the next dispatches into a full queue.
static void chain(void) {
    chained.queue = queue_of(64, HSA_QUEUE_TYPE_MULTI);
    awaited = signal_of(1);
    CHECK(hsa_amd_signal_async_handler(awaited, HSA_SIGNAL_CONDITION_LT, 1, next_link, NULL));
    hsa_signal_store_screlease(awaited, 0);
    while (__atomic_load_n(&chained.dispatches, __ATOMIC_ACQUIRE) < 20 * 31)
        usleep(1000);
    finish(&chained);
}

// A single producer that sets the write index before it writes the packets or after, in turns.
static void stored(void) {
    struct test_queue q = {queue_of(64, HSA_QUEUE_TYPE_SINGLE), 0};
    for (int n = 0; n < 100; ++n) {
        uint64_t index = hsa_queue_load_write_index_relaxed(q.queue), count = n % 7 + 1;
        wait_for_slots(q.queue, index, count);
        if (n % 2)
            hsa_queue_store_write_index_screlease(q.queue, index + count);
        for (uint64_t k = 0; k < count; ++k)
            put_dispatch(q.queue, index + k, q.dispatches++, no_signal, k % 2);
        if (n % 2 == 0 && hsa_queue_cas_write_index_scacq_screl(q.queue, index, index + count) != index)
            exit(1);
        hsa_signal_store_relaxed(q.queue->doorbell_signal, index + count - 1);
    }
    finish(&q);
}

// How often the threads whose names start with devprof went to sleep.
static long sleeps(void) {
    long all = 0;
    DIR *threads = opendir("/proc/self/task");
    for (struct dirent *thread; (thread = readdir(threads));) {
        char name[300], line[128];
        snprintf(name, sizeof name, "/proc/self/task/%s/status", thread->d_name);
        FILE *file = fopen(name, "r");
        bool is_devprof = false;
        while (file && fgets(line, sizeof line, file)) {
            is_devprof |= !strncmp(line, "Name:\tdevprof", 13);
            if (is_devprof && !strncmp(line, "voluntary_ctxt_switches:", 24))
                all += atol(line + 24);
        }
        if (file)
            fclose(file);
    }
    closedir(threads);
    return all;
}

// An idle period. On a busy machine it may begin late.
static void quiet(void) {
    struct test_queue q = {queue_of(64, HSA_QUEUE_TYPE_SINGLE), 0};
    some(&q, 100);
    drain(&q);
    long woke_up;
    int tries = 0;
    do {
        long before = sleeps();
        usleep(300000);
        woke_up = sleeps() - before;
    } while (woke_up && ++tries < 200);
    printf("woke up: %ld\n", woke_up);
    some(&q, 100);
    finish(&q);
}

// Other code in the process, for example a library, initializes HSA and shuts it down again: HSA stays initialized.
static void nested(void) {
    struct test_queue q = {queue_of(64, HSA_QUEUE_TYPE_SINGLE), 0};
    some(&q, 50);
    for (int n = 0; n < 3; ++n) {
        CHECK(hsa_init());
        some(&q, 10);
        CHECK(hsa_shut_down());
        some(&q, 10);
    }
    struct test_queue late = {queue_of(64, HSA_QUEUE_TYPE_MULTI), 0};
    some(&late, 40);
    drain(&late);
    drain(&q);
    printf("ran: %lu\n", ran());
    CHECK(hsa_queue_destroy(late.queue));
    CHECK(hsa_queue_destroy(q.queue));
}

static const char *code_object;

// HSA is shut down while a queue exists, and initialized again. New signals may have the addresses of old doorbells.
static void again(void) {
    for (int round = 0; round < 3; ++round) {
        struct test_queue q = {queue_of(64, HSA_QUEUE_TYPE_SINGLE), 0};
        some(&q, 100);
        drain(&q);
        printf("ran: %lu\n", ran());
        end();
        begin(code_object);
        int wrong = 0;
        hsa_signal_t signals[4000];
        for (int n = 0; n < 4000; ++n) {
            signals[n] = signal_of(1);
            hsa_signal_store_screlease(signals[n], 1000 + n);
            hsa_signal_store_relaxed(signals[n], 2000 + n);
        }
        for (int n = 0; n < 4000; ++n) {
            wrong += hsa_signal_load_relaxed(signals[n]) != 2000 + n;
            CHECK(hsa_signal_destroy(signals[n]));
        }
        printf("wrong: %d\n", wrong);
    }
}

// 100 dispatches.
static void plain(void) {
    struct test_queue q = {queue_of(64, HSA_QUEUE_TYPE_SINGLE), 0};
    some(&q, 100);
    finish(&q);
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    const char *what = argv[2];
    static const struct {
        const char *name;
        void (*run)(void);
    } scenarios[] = {{"gate", gate},           {"signals", signals}, {"across", across}, {"threads", threads},
                     {"destroyed", destroyed}, {"vendor", vendor},   {"forks", forks},   {"plain", plain},
                     {"unknown", unknown},     {"invalid", invalid}, {"nested", nested}, {"again", again},
                     {"waiters", waiters},     {"chain", chain},     {"stored", stored},     {"quiet", quiet},
                     {"hints", hints},         {"jump", jump}};
    begin(code_object = argv[1]);
    for (size_t n = 0; n < sizeof scenarios / sizeof *scenarios; ++n)
        if (!strcmp(what, scenarios[n].name)) {
            scenarios[n].run();
            end();
            return 0;
        }
    leave(what);
}
