// The times that hsa_amd_profiling_get_dispatch_time returns for the program's own signals: kernels one after the
// other, some with a signal that the next one reuses, and a signal of a barrier packet after the kernel. Prints on
// stdout whether the times are plausible, and writes the times of each kernel to the file TIMES, if it is named.
//
//     times CODE_OBJECT [TIMES]
#include "packets.h"
#include <hsa/hsa_ext_amd.h>

enum { KERNELS = 40 };

static uint64_t clock_now(void) {
    uint64_t now;
    CHECK(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP, &now));
    return now;
}

static hsa_amd_profiling_dispatch_time_t time_of(hsa_signal_t signal) {
    hsa_amd_profiling_dispatch_time_t time = {0};
    CHECK(hsa_amd_profiling_get_dispatch_time(gpu, signal, &time));
    return time;
}

int main(int argc, char **argv) {
    if (argc < 2)
        return 2;
    begin(argv[1]);
    FILE *file = argc > 2 ? fopen(argv[2], "w") : NULL;
    struct test_queue q = {queue_of(64, HSA_QUEUE_TYPE_SINGLE), 0};
    CHECK(hsa_amd_profiling_set_profiler_enabled(q.queue, 1));
    hsa_signal_t shared = signal_of(1);
    uint64_t last = clock_now();
    int inside = 0, ran_for = 0, reused = 0;
    for (int n = 0; n < KERNELS; ++n) {
        hsa_signal_t own = n % 2 ? shared : signal_of(1);
        hsa_signal_store_screlease(own, 1);
        dispatch(&q, own, true);
        await(own);
        hsa_amd_profiling_dispatch_time_t time = time_of(own);
        uint64_t now = clock_now();
        inside += last <= time.start && time.start <= time.end && time.end <= now;
        ran_for += time.start < time.end;
        if (file)
            fprintf(file, "start=%lu end=%lu\n", time.start, time.end);
        last = now;
        if (n % 4 == 0) {
            hsa_signal_store_screlease(own, 1);
            wait_for(&q, HSA_PACKET_TYPE_BARRIER_AND, NULL, 0, own);
            await(own);
            time = time_of(own);
            now = clock_now();
            reused += last <= time.start && time.start <= time.end && time.end <= now;
            last = now;
        }
        if (own.handle != shared.handle)
            CHECK(hsa_signal_destroy(own));
    }
    printf("ran: %lu, inside: %d, some time: %d, barriers: %d\n", ran(), inside, ran_for, reused);
    CHECK(hsa_queue_destroy(q.queue));
    if (file)
        fclose(file);
    end();
}
