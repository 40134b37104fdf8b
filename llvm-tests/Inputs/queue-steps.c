// queue-steps CODE_OBJECT STEP…: executes the steps in the given order on the first GPU, and prints results.
//
//     load            loads the code object
//     unload          destroys it
//     run             runs its kernel `branch` with 64 work-items; the packet releases to agent scope only, as HIP's do
//     start           the same, without waiting for it
//     own             like run, with a completion signal that these steps share; prints the times that HSA returns
//     barrier         like own, with a barrier packet instead of a kernel
//     signal          replaces the shared signal with a new one that has the same handle
//     profiled        calls hsa_amd_profiling_set_profiler_enabled for the queue
//     queue           uses a new queue of hsa_queue_create from here on; the first one is created on first use
//     cooperative     uses a new cooperative queue
//     amd             uses a new queue of hsa_amd_queue_create; counted: of hsa_amd_counted_queue_acquire
//     leave           destroys or releases the queue
//     collect, reset, flush  calls devprof's function and prints its result
//     snapshots=FILE  waits for two snapshots
//     count           prints how often the kernel ran, as counted in the device's memory
//     down, up        hsa_shut_down; hsa_init with a new queue
//     env=NAME=VALUE  sets an environment variable
//     term, quit      raise(SIGTERM), _exit
#include "packets.h"
#include "snapshots.h"
#include <dlfcn.h>
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

static uint64_t launch(hsa_queue_t *queue, hsa_signal_t done) {
    static uint64_t number;
    hsa_kernel_dispatch_packet_t packet = {0};
    packet.setup = 1;
    packet.workgroup_size_x = packet.grid_size_x = 64;
    packet.workgroup_size_y = packet.workgroup_size_z = packet.grid_size_y = packet.grid_size_z = 1;
    packet.group_segment_size = number++ % 1000;
    packet.kernel_object = kernel_object;
    packet.kernarg_address = arguments;
    packet.completion_signal = done;
    uint64_t index = hsa_queue_add_write_index_scacq_screl(queue, 1);
    put(queue, index, &packet,
        HSA_PACKET_TYPE_KERNEL_DISPATCH << HSA_PACKET_HEADER_TYPE | 1 << HSA_PACKET_HEADER_BARRIER |
            HSA_FENCE_SCOPE_AGENT << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
            HSA_FENCE_SCOPE_AGENT << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE);
    ring(queue, index);
    return index;
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

static void up(void) {
    gpu.handle = cpu.handle = 0;
    queue = NULL;
    start();
    arguments = host_memory(8192);
    *(void **)arguments = arguments + 4096;
}

int main(int argc, char **argv) {
    if (argc < 2)
        return 2;
    size_t size;
    void *bytes = read_file(argv[1], &size);
    up();
    hsa_signal_t shared = signal_of(1);
    for (int n = 2; n < argc; ++n) {
        const char *step = argv[n];
        if (!strcmp(step, "load")) {
            code = load(bytes, size);
            kernel_object = symbol_u64(code, "branch.kd", HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT);
        } else if (!strcmp(step, "unload")) {
            CHECK(hsa_executable_destroy(code));
        } else if (!strcmp(step, "run")) {
            hsa_signal_t done = signal_of(1);
            launch(the_queue(), done);
            await(done);
            CHECK(hsa_signal_destroy(done));
        } else if (!strcmp(step, "start")) {
            launch(the_queue(), no_signal);
        } else if (!strcmp(step, "own")) {
            hsa_amd_profiling_dispatch_time_t time = {0};
            hsa_signal_store_screlease(shared, 1);
            launch(the_queue(), shared);
            await(shared);
            CHECK(hsa_amd_profiling_get_dispatch_time(gpu, shared, &time));
            printf("%lu %lu\n", time.start, time.end);
        } else if (!strcmp(step, "barrier")) {
            struct test_queue q = {the_queue(), 0};
            hsa_amd_profiling_dispatch_time_t time = {0};
            hsa_signal_store_screlease(shared, 1);
            wait_for(&q, HSA_PACKET_TYPE_BARRIER_AND, NULL, 0, shared);
            await(shared);
            CHECK(hsa_amd_profiling_get_dispatch_time(gpu, shared, &time));
            printf("%lu %lu\n", time.start, time.end);
        } else if (!strcmp(step, "signal")) {
            uint64_t old = shared.handle;
            CHECK(hsa_signal_destroy(shared));
            int tries = 0;
            do
                shared = signal_of(1);
            while (shared.handle != old && ++tries < 10000);
            if (shared.handle != old)
                printf("no signal has the handle of the old one\n");
        } else if (!strcmp(step, "profiled")) {
            CHECK(hsa_amd_profiling_set_profiler_enabled(the_queue(), 1));
        } else if (!strcmp(step, "queue")) {
            queue = NULL;
            the_queue();
        } else if (!strcmp(step, "cooperative")) {
            CHECK(hsa_queue_create(gpu, 64, HSA_QUEUE_TYPE_COOPERATIVE, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue));
            leave = hsa_queue_destroy;
        } else if (!strcmp(step, "amd")) {
            hsa_status_t (*create)(hsa_agent_t, struct desc *, uint32_t) = function("hsa_amd_queue_create");
            struct desc descs[2] = {{.version = 1, .bytes = 64 * 64, .priority = 1}, {.version = 1, .bytes = 3, .priority = 1}};
            printf("hsa_amd_queue_create: %#x\n", create(gpu, descs, 2));
            queue = descs[0].queue;
            printf("queues: %d %d\n", !!descs[0].queue, !!descs[1].queue);
            leave = hsa_queue_destroy;
        } else if (!strcmp(step, "counted")) {
            hsa_status_t (*acquire)(hsa_agent_t, uint32_t, uint32_t, void *, void *, uint64_t, hsa_queue_t **) =
                function("hsa_amd_counted_queue_acquire");
            CHECK(acquire(gpu, HSA_QUEUE_TYPE_MULTI, 1, NULL, NULL, 0, &queue));
            leave = function("hsa_amd_counted_queue_release");
        } else if (!strcmp(step, "leave")) {
            CHECK(leave(the_queue()));
            queue = NULL;
        } else if (!strcmp(step, "collect")) {
            printf("collect: %d\n", ((int (*)(void))function("__llvm_profile_hip_collect_device_data"))());
        } else if (!strcmp(step, "flush")) {
            printf("flush: %d\n", ((int (*)(void))function("devprof_trace_flush"))());
        } else if (!strcmp(step, "reset")) {
            printf("reset: %d\n", ((int (*)(void))function("devprof_reset_counters"))());
        } else if (!strncmp(step, "snapshots=", 10)) {
            await_snapshots(step + 10);
        } else if (!strcmp(step, "count")) {
            printf("ran: %lu\n", ran());
        } else if (!strcmp(step, "down")) {
            CHECK(hsa_shut_down());
        } else if (!strcmp(step, "up")) {
            up();
            shared = signal_of(1);
        } else if (!strncmp(step, "env=", 4)) {
            putenv(argv[n] + 4);
        } else if (!strcmp(step, "term")) {
            raise(SIGTERM);
        } else if (!strcmp(step, "quit")) {
            _exit(0);
        } else {
            printf("no such step: %s\n", step);
            return 2;
        }
    }
}
