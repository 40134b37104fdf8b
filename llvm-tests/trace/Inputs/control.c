// Starts and stops the recording between packets. The LDS size of a dispatch says what is expected: dispatches with even
// numbers are recorded, those with odd numbers are not.
//
// stopped: the trace begins stopped. All queues are created before its start.
// again:   a slot is reserved while the recording is on, between two times at which it is stopped.
// times:   a program's signal is used while the recording is on, and again while it is stopped.
#define DEVPROF_OPTIONAL
#include "devprof.h"
#include "packets.h"

static hsa_queue_t *queue;

static uint64_t reserve(uint64_t count) {
    uint64_t index = hsa_queue_add_write_index_screlease(queue, count);
    wait_for_slots(queue, index, count);
    return index;
}

static void put_number(uint64_t index, int number) { put_dispatch(queue, index, number, no_signal, true); }

static void launch(int number) {
    uint64_t index = reserve(1);
    put_number(index, number);
    ring(queue, index);
}

static void wait_idle(void) {
    struct test_queue q = {queue, 0};
    drain(&q);
}

static void times(void) {
    struct test_queue q = {queue, 0};
    hsa_signal_t signal = signal_of(1);
    hsa_amd_profiling_dispatch_time_t time[3];
    CHECK(hsa_amd_profiling_set_profiler_enabled(queue, 1));
    for (int n = 0; n < 3; n++) {
        if (n == 1)
            devprof_trace_stop();
        else
            devprof_trace_start();
        hsa_signal_store_relaxed(signal, 1);
        q.dispatches = n;
        dispatch(&q, signal, true);
        await(signal);
        CHECK(hsa_amd_profiling_get_dispatch_time(gpu, signal, &time[n]));
        printf("%s\n", n == 0 || time[n].start >= time[n - 1].end ? "new times" : "times of the kernel before");
    }
}

static int again(void) {
    int status = devprof_trace_stop();
    launch(1);
    status |= devprof_trace_start();
    uint64_t index = reserve(1);
    status |= devprof_trace_stop();
    put_number(index, 2);
    ring(queue, index);
    launch(3);
    status |= devprof_trace_start();
    launch(4);
    return status;
}

int main(int argc, char **argv) {
    begin(argv[1]);
    int is_stopped = strcmp(argv[2], "stopped") == 0;
    int status = 0;
    queue = queue_of(1024, HSA_QUEUE_TYPE_MULTI);
    if (is_stopped) {
        launch(1);
        status |= devprof_trace_start();
    }
    if (strcmp(argv[2], "times") == 0) {
        times();
    } else if (strcmp(argv[2], "again") == 0) {
        status |= again();
    } else {
        launch(2);
        // Reserved while the recording is on, and written when it is stopped.
        uint64_t first = reserve(2);
        put_number(first, 4);
        status |= devprof_trace_stop();
        put_number(first + 1, 6);
        uint64_t next = reserve(1);
        put_number(next, 3);
        ring(queue, next);
        // A doorbell for more packets than ROCr gets at once.
        first = reserve(500);
        for (int n = 0; n < 500; n++)
            put_number(first + n, 5);
        ring(queue, first + 499);
        launch(7);
        status |= devprof_trace_stop() | devprof_trace_flush() | devprof_trace_start();
        wait_idle();
        first = reserve(500);
        for (int n = 0; n < 500; n++)
            put_number(first + n, 8);
        ring(queue, first + 499);
        status |= devprof_trace_flush();
        if (argc > 3)
            status |= system(argv[3]);
        launch(10);
        status |= devprof_trace_stop();
        wait_idle();
        launch(9);
    }
    wait_idle();
    CHECK(hsa_queue_destroy(queue));
    printf("status: %d\n", status);
    end();
}
