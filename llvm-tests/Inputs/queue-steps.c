// queue-steps CODE_OBJECT NAME[=VALUE]…: executes the steps of step() in the given order on the first GPU, and prints results.
#include "execute.h"
#include "packets.h"
#include "snapshots.h"
#include <signal.h>

// hsa_amd_queue_create_desc_t, which the headers of ROCr 7.2 do not have.
struct desc {
    uint16_t version, flags;
    uint8_t engine, reserved0[3];
    uint32_t bytes, priority;
    void (*callback)(hsa_status_t, hsa_queue_t *, void *);
    void *data;
    hsa_queue_t *queue;
    const uint32_t *cu_mask;
    uint32_t type, private_segment_size, cu_mask_count, reserved1[3], traffic_class;
    uint8_t reserved2[20];
};

static void *function(const char *name) {
    void *found = dlsym(RTLD_DEFAULT, name);
    if (!found) {
        printf("%s: not found\n", name);
        exit(1);
    }
    return found;
}

// The queue that the steps use; created on first use.
static hsa_queue_t *queue;
static hsa_status_t (*leave)(hsa_queue_t *);

static hsa_queue_t *the_queue(void) {
    if (!queue) {
        queue = queue_of(64, HSA_QUEUE_TYPE_MULTI);
        leave = hsa_queue_destroy;
    }
    return queue;
}

static void *bytes;
static size_t size;
// The completion signal that steps share.
static hsa_signal_t shared;

static void up(void) {
    gpu.handle = cpu.handle = 0;
    queue = NULL;
    start();
    arguments = host_memory(8192);
    *(void **)arguments = arguments + 4096;
    shared = signal_of(1);
}

static void load_code(void) {
    code = load(bytes, size);
    kernel_object = symbol_u64(code, "branch.kd", HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT);
}

// Runs the kernel `branch` with 64 work-items. The packet releases to agent scope only, as HIP's do.
static void launch(hsa_signal_t done) {
    static uint64_t number;
    hsa_queue_t *to = the_queue();
    uint64_t index = hsa_queue_add_write_index_scacq_screl(to, 1);
    hsa_kernel_dispatch_packet_t packet = dispatch_packet(number++, done);
    put(to, index, &packet,
        HSA_PACKET_TYPE_KERNEL_DISPATCH << HSA_PACKET_HEADER_TYPE | 1 << HSA_PACKET_HEADER_BARRIER |
            HSA_FENCE_SCOPE_AGENT << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
            HSA_FENCE_SCOPE_AGENT << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE);
    ring(to, index);
}

static void run(void) {
    hsa_signal_t done = signal_of(1);
    launch(done);
    await(done);
    CHECK(hsa_signal_destroy(done));
}

// A kernel, or a barrier packet, with the shared signal. Prints the times that HSA returns.
static void run_timed(bool barrier) {
    struct test_queue q = {the_queue(), 0};
    hsa_amd_profiling_dispatch_time_t time = {0};
    hsa_signal_store_screlease(shared, 1);
    if (barrier)
        wait_for(&q, HSA_PACKET_TYPE_BARRIER_AND, NULL, 0, shared);
    else
        launch(shared);
    await(shared);
    CHECK(hsa_amd_profiling_get_dispatch_time(gpu, shared, &time));
    printf("%lu %lu\n", time.start, time.end);
}

// Replaces the shared signal with a new one that has the same handle.
static void replace_signal(void) {
    uint64_t old = shared.handle;
    CHECK(hsa_signal_destroy(shared));
    int tries = 0;
    do
        shared = signal_of(1);
    while (shared.handle != old && ++tries < 10000);
    if (shared.handle != old)
        printf("no signal has the handle of the old one\n");
}

static void cooperative_queue(void) {
    queue = queue_of(64, HSA_QUEUE_TYPE_COOPERATIVE);
    leave = hsa_queue_destroy;
}

static void amd_queue(void) {
    hsa_status_t (*create)(hsa_agent_t, struct desc *, uint32_t) = function("hsa_amd_queue_create");
    struct desc descs[2] = {{.version = 1, .bytes = 64 * 64, .priority = 1}, {.version = 1, .bytes = 3, .priority = 1}};
    printf("hsa_amd_queue_create: %#x\n", create(gpu, descs, 2));
    queue = descs[0].queue;
    printf("queues: %d %d\n", !!descs[0].queue, !!descs[1].queue);
    leave = hsa_queue_destroy;
}

static void counted_queue(void) {
    hsa_status_t (*acquire)(hsa_agent_t, uint32_t, uint32_t, void *, void *, uint64_t, hsa_queue_t **) =
        function("hsa_amd_counted_queue_acquire");
    CHECK(acquire(gpu, HSA_QUEUE_TYPE_MULTI, 1, NULL, NULL, 0, &queue));
    leave = function("hsa_amd_counted_queue_release");
}

static void leave_queue(void) {
    CHECK(leave(the_queue()));
    queue = NULL;
}

static void step(const char *name, char *value) {
    ON("load", load_code())
    ON("unload", CHECK(hsa_executable_destroy(code)))
    ON("run", run())
    ON("start", launch(no_signal)) // does not wait
    ON("own", run_timed(false))
    ON("barrier", run_timed(true))
    ON("signal", replace_signal())
    ON("profiled", CHECK(hsa_amd_profiling_set_profiler_enabled(the_queue(), 1)))
    // A new queue, which the next steps use.
    ON("queue", (queue = NULL, the_queue()))
    ON("cooperative", cooperative_queue())
    ON("amd", amd_queue())
    ON("counted", counted_queue())
    ON("leave", leave_queue())
    ON_DEVPROF
    ON("flush", print_call(name, NULL, "devprof_trace_flush"))
    ON("snapshots", await_snapshots(value))
    ON("count", printf("ran: %lu\n", ran())) // as counted in the device's memory
    ON("down", CHECK(hsa_shut_down()))
    ON("up", up())
    ON("env", putenv(value))
    ON("term", raise(SIGTERM))
    ON("quit", _exit(0))
    no_such_step(name);
}

int main(int argc, char **argv) {
    if (argc < 2)
        return 2;
    bytes = read_file(argv[1], &size);
    up();
    execute(argc, argv);
}
