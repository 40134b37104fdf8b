// Writes TOTAL dispatches into a queue of SIZE packets, BATCH at a time with one doorbell ring per batch; the first
// batch has FIRST. Waits while the queue is full. If the environment variable MEMORY is set, prints its memory use at
// the end: private memory, mapped files, and the peak of both.
//
//     batches CODE_OBJECT SIZE BATCH TOTAL [FIRST]
#include "packets.h"

static void print_memory(void) {
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status))
        if (!strncmp(line, "VmHWM", 5) || !strncmp(line, "RssAnon", 7) || !strncmp(line, "RssFile", 7))
            fputs(line, stdout);
    fclose(status);
}

int main(int argc, char **argv) {
    if (argc < 5)
        return 2;
    begin(argv[1]);
    uint64_t batch = strtoul(argv[3], NULL, 0), total = strtoul(argv[4], NULL, 0);
    uint64_t first = argc > 5 ? strtoul(argv[5], NULL, 0) : batch;
    struct test_queue q = {queue_of(strtoul(argv[2], NULL, 0), HSA_QUEUE_TYPE_SINGLE), 0};
    while (q.dispatches < total) {
        uint64_t count = q.dispatches ? batch : first;
        if (count > total - q.dispatches)
            count = total - q.dispatches;
        uint64_t index = hsa_queue_add_write_index_relaxed(q.queue, count);
        wait_for_slots(q.queue, index, count);
        for (uint64_t n = 0; n < count; ++n)
            put_dispatch(q.queue, index + n, q.dispatches++, no_signal, true);
        ring(q.queue, index + count - 1);
    }
    drain(&q);
    printf("ran: %lu of %lu\n", ran(), total);
    if (getenv("MEMORY"))
        print_memory();
    CHECK(hsa_queue_destroy(q.queue));
    end();
}
