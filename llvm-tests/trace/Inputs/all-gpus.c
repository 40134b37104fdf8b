// All GPUs at once: each has two queues for one thread and one for two threads, and each thread writes to queues of
// three GPUs.
//
// The fields of a dispatch identify it in the trace: the grid's x is the GPU's index in HSA's order of agents plus 64
// times the number of the GPU's queue, y is the number of the thread that wrote it, z is 1. The LDS size counts the
// queue's dispatches modulo 1000, and the kernel is `branch` if that is even, `loop` if it is odd. The kernel counts its
// work-items itself.
//
//     all-gpus CODE_OBJECT DISPATCHES
#include "packets.h"

enum { QUEUES = 3, SHARED = 2 };

static struct gpu {
    hsa_agent_t agent;
    uint32_t number;
    hsa_executable_t code;
    uint64_t kernels[2];
    struct test_queue queues[QUEUES];
} each[GPUS];

static int count;
static uint64_t total;

static hsa_status_t find_gpus(hsa_agent_t agent, void *data) {
    uint32_t *number = data;
    hsa_device_type_t type;
    CHECK(hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type));
    if (type == HSA_DEVICE_TYPE_GPU && count < GPUS) {
        each[count].agent = agent;
        each[count++].number = *number;
    }
    ++*number;
    return HSA_STATUS_SUCCESS;
}

static void write_to(struct gpu *to, int queue, int thread, hsa_signal_t done) {
    struct test_queue *q = &to->queues[queue];
    uint64_t index = hsa_queue_add_write_index_scacq_screl(q->queue, 1);
    wait_for_slots(q->queue, index, 1);
    hsa_kernel_dispatch_packet_t packet = {0};
    packet.setup = 3;
    packet.workgroup_size_x = 64;
    packet.workgroup_size_y = packet.workgroup_size_z = 1;
    packet.grid_size_x = to->number + 64 * queue;
    packet.grid_size_y = thread;
    packet.grid_size_z = 1;
    packet.group_segment_size = index % 1000;
    packet.kernel_object = to->kernels[index % 1000 % 2];
    packet.kernarg_address = arguments;
    packet.completion_signal = done;
    put(q->queue, index, &packet, header_of(HSA_PACKET_TYPE_KERNEL_DISPATCH, true));
    ring(q->queue, index);
}

static void *work(void *data) {
    struct gpu *own = data;
    int thread = own - each + 1;
    struct gpu *other = &each[thread % GPUS], *third = &each[(thread + 2) % GPUS];
    hsa_signal_t done = signal_of(total / 10);
    for (uint64_t n = 0; n < total; ++n) {
        write_to(own, 0, thread, n % 10 ? no_signal : done);
        write_to(other, 1, thread, no_signal);
        write_to(own, SHARED, thread, no_signal);
        write_to(third, SHARED, thread, no_signal);
    }
    await(done);
    CHECK(hsa_signal_destroy(done));
    return NULL;
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    total = strtoul(argv[2], NULL, 0);
    begin(argv[1]);
    uint32_t number = 0;
    CHECK(hsa_iterate_agents(find_gpus, &number));
    size_t size;
    void *bytes = read_file(argv[1], &size);
    for (int n = 0; n < count; ++n) {
        struct gpu *own = &each[n];
        // hsa.h and packets.h use `gpu`.
        gpu = own->agent;
        own->code = load(bytes, size);
        own->kernels[0] = symbol_u64(own->code, "branch.kd", HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT);
        own->kernels[1] = symbol_u64(own->code, "loop.kd", HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT);
        for (int queue = 0; queue < QUEUES; ++queue)
            own->queues[queue].queue = queue_of(64, queue == SHARED ? HSA_QUEUE_TYPE_MULTI : HSA_QUEUE_TYPE_SINGLE);
    }
    CHECK(hsa_amd_agents_allow_access(gpu_count, gpus, NULL, arguments));
    pthread_t threads[GPUS];
    for (int n = 0; n < count; ++n)
        pthread_create(&threads[n], NULL, work, &each[n]);
    for (int n = 0; n < count; ++n)
        pthread_join(threads[n], NULL);
    for (int n = 0; n < count; ++n) {
        for (int queue = 0; queue < QUEUES; ++queue) {
            drain(&each[n].queues[queue]);
            CHECK(hsa_queue_destroy(each[n].queues[queue].queue));
        }
        gpu = each[n].agent;
        uint64_t items = 0;
        for (int kernel = 0; kernel < 2; ++kernel) {
            uint64_t counters[2];
            read_counters(each[n].code, kernel ? "__profc_loop" : "__profc_branch", counters, 2);
            items += counters[0];
        }
        printf("GPU %d: %lu work-items\n", n, items);
        CHECK(hsa_executable_destroy(each[n].code));
    }
    end();
}
