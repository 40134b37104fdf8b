// What a launch calls in the steady state: two threads launch dispatches on their own queues, with HSA directly or with
// API calls (hip-launch.c). During the first ten thousand dispatches the queues are full at times. During forty
// thousand more, the program counts the allocations of these threads and of libdevprof.so (allocations.c), and the
// calls of the simulator's functions.
//
// The threads launch in blocks, and after each block wait until the block is in the trace. How far recording falls
// behind on a busy machine is not tested here.
//
//     steady CODE_OBJECT hsa|signals|hip
//
// With "signals", each dispatch has a completion signal of the program, which resets the signals and uses them again.
#define _GNU_SOURCE
#include "packets.h"
#include <dlfcn.h>

enum { THREADS = 2, SIZE = 1024, WARM = 10000 / THREADS, COUNTED = 40000 / THREADS, BLOCK = 250 };

// The permitted number of allocations: on the launching threads, and in libdevprof.so.
enum { MOST_LAUNCHING = 0, MOST = 0 };

// How many API calls of a thread may stay unrecorded until the thread makes more calls.
enum { CALLS_BEHIND = 256 };

struct dim3 {
    uint32_t x, y, z;
};
int hipLaunchKernel(void (*kernel)(void *), struct dim3 grid, struct dim3 block, void **arguments, size_t lds,
                    void *stream);

static bool hip, signals;
static int trace;
static pthread_barrier_t turn, block;
static uint64_t (*here)(void), (*by_devprof)(void), (*calls)(const char *);
static uint64_t launching;

// The number of calls of the last function is known, and shows that calls are counted.
static const char *functions[] = {"hsa_signal_create", "hsa_amd_signal_create", "hsa_signal_destroy",
                                  "hsa_amd_signal_async_handler", "hsa_amd_memory_pool_allocate", "hsa_signal_store_screlease"};
enum { FUNCTIONS = sizeof functions / sizeof *functions };

static void launch(void *q) { dispatch(q, no_signal, true); }

static void launch_nothing(void *q) { (void)q; }

static __thread hsa_signal_t own[SIZE];

static void launch_with_signal(struct test_queue *q) {
    hsa_signal_t *signal = &own[q->dispatches % SIZE];
    if (signal->handle) {
        await(*signal);
        hsa_signal_store_relaxed(*signal, 1);
    } else {
        *signal = signal_of(1);
    }
    dispatch(q, *signal, true);
}

static void launches(struct test_queue *q, int number) {
    struct dim3 one = {1, 1, 1};
    for (int n = 0; n < number; ++n)
        if (hip)
            hipLaunchKernel(launch, one, one, NULL, 0, q);
        else if (signals)
            launch_with_signal(q);
        else
            launch(q);
}

static void finish(struct test_queue *q, uint64_t calls_of_nothing, hsa_signal_t done) {
    hsa_signal_store_relaxed(done, 1);
    wait_for(q, HSA_PACKET_TYPE_BARRIER_AND, NULL, 0, done);
    await(done);
    pthread_barrier_wait(&block);
    // The header's first counter is the number of records. Both threads have made the same number of calls.
    uint64_t recorded, made = q->dispatches;
    if (hip)
        made += q->dispatches + calls_of_nothing - CALLS_BEHIND;
    do {
        usleep(100);
        if (pread(trace, &recorded, 8, 128) != 8)
            exit(3);
    } while (recorded < THREADS * made);
}

static void *work(void *data) {
    struct test_queue *q = data;
    hsa_signal_t done = signal_of(1);
    // A full queue, and calls that are made faster than they are recorded: both allocate memory that suffices for
    // everything that follows.
    struct dim3 one = {1, 1, 1};
    uint64_t burst = hip ? 20000 : 0;
    for (uint64_t n = 0; n < burst; ++n)
        hipLaunchKernel(launch_nothing, one, one, NULL, 0, NULL);
    hsa_signal_t closed = signal_of(1);
    wait_for(q, HSA_PACKET_TYPE_BARRIER_AND, &closed, 1, no_signal);
    launches(q, SIZE - 2);
    hsa_signal_store_screlease(closed, 0);
    launches(q, WARM - SIZE + 2 - 2 * BLOCK);
    finish(q, burst, done);
    for (int n = 0; n < 2; ++n) {
        launches(q, BLOCK);
        finish(q, burst, done);
    }
    pthread_barrier_wait(&turn);
    pthread_barrier_wait(&turn);
    uint64_t before = here();
    for (int n = 0; n < COUNTED / BLOCK; ++n) {
        launches(q, BLOCK);
        finish(q, burst, done);
    }
    __atomic_fetch_add(&launching, here() - before, __ATOMIC_RELAXED);
    pthread_barrier_wait(&turn);
    pthread_barrier_wait(&turn);
    CHECK(hsa_signal_destroy(done));
    CHECK(hsa_signal_destroy(closed));
    return NULL;
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    hip = !strcmp(argv[2], "hip");
    signals = !strcmp(argv[2], "signals");
    here = dlsym(RTLD_DEFAULT, "allocations_here");
    by_devprof = dlsym(RTLD_DEFAULT, "allocations_by_devprof");
    calls = dlsym(RTLD_DEFAULT, "hsa_sim_calls");
    int (*plan)(const char *) = dlsym(RTLD_DEFAULT, "hsa_sim_plan");
    begin(argv[1]);
    // An empty fault plan, so that the simulator counts calls.
    plan("");
    trace = open(getenv("DEVPROF_TRACE"), O_RDONLY);
    pthread_barrier_init(&turn, NULL, THREADS + 1);
    pthread_barrier_init(&block, NULL, THREADS);
    struct test_queue queues[THREADS];
    pthread_t threads[THREADS];
    for (int n = 0; n < THREADS; ++n) {
        queues[n] = (struct test_queue){queue_of(SIZE, HSA_QUEUE_TYPE_SINGLE), 0};
        pthread_create(&threads[n], NULL, work, &queues[n]);
    }
    pthread_barrier_wait(&turn);
    printf("before: %s\n", by_devprof() ? "libdevprof.so has allocated" : "nothing allocated by libdevprof.so");
    uint64_t before = by_devprof(), called[FUNCTIONS];
    for (int n = 0; n < FUNCTIONS; ++n)
        called[n] = calls(functions[n]);
    pthread_barrier_wait(&turn);
    pthread_barrier_wait(&turn);
    uint64_t allocated = by_devprof() - before;
    printf("launching threads: %s\n", launching <= MOST_LAUNCHING ? "no launch allocates" : "launches allocate");
    printf("libdevprof.so: %s\n", allocated <= MOST ? "no dispatch allocates" : "dispatches allocate");
    for (int n = 0; n < FUNCTIONS; ++n)
        printf("%s: %lu\n", functions[n], calls(functions[n]) - called[n]);
    fprintf(stderr, "allocations: %lu, %lu\n", launching, allocated);
    pthread_barrier_wait(&turn);
    for (int n = 0; n < THREADS; ++n) {
        pthread_join(threads[n], NULL);
        CHECK(hsa_queue_destroy(queues[n].queue));
    }
    end();
}
