// a HOW N: launches kernels of N loop iterations and exits without waiting for them. If the environment variable DOWN
// is set, shuts HSA down first. With USE_HIP, it also uses HIP, which must be in the process.
//
// HOW: multi, single (the queue's type); full (fills the queue); again (collects twice, then launches again); reset
// (resets the counters, then launches again); destroyed, inactive (destroys or inactivates the queue); every (a queue
// on each GPU).
#include "hsa.h"
#include <dlfcn.h>

static hsa_queue_t *busy, *idle;

static void print_indices(void) {
    printf("busy: %lu packets, %lu taken\n", hsa_queue_load_write_index_relaxed(busy), hsa_queue_load_read_index_scacquire(busy));
    printf("idle: %lu packets, %lu taken\n", hsa_queue_load_write_index_relaxed(idle), hsa_queue_load_read_index_scacquire(idle));
}

static hsa_queue_t *new_queue(hsa_queue_type32_t type) {
    hsa_queue_t *queue;
    CHECK(hsa_queue_create(gpu, 64, type, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue));
    return queue;
}

static void dispatch(hsa_queue_t *queue, hsa_executable_t executable, int rounds) {
    struct { void *out; int rounds; } *arguments = host_memory(4096);
    arguments->out = host_memory(4096);
    arguments->rounds = rounds;
    uint64_t index = hsa_queue_add_write_index_relaxed(queue, 1);
    hsa_kernel_dispatch_packet_t *packet = (hsa_kernel_dispatch_packet_t *)queue->base_address + index % queue->size;
    memset((char *)packet + 4, 0, sizeof *packet - 4);
    packet->workgroup_size_x = packet->grid_size_x = 64;
    packet->workgroup_size_y = packet->workgroup_size_z = packet->grid_size_y = packet->grid_size_z = 1;
    packet->private_segment_size = symbol_u64(executable, "entry.kd", HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE);
    packet->group_segment_size = symbol_u64(executable, "entry.kd", HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE);
    packet->kernel_object = symbol_u64(executable, "entry.kd", HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT);
    packet->kernarg_address = arguments;
    // No barrier bit and no signal: kernels of a queue may overlap.
    uint16_t header = HSA_PACKET_TYPE_KERNEL_DISPATCH << HSA_PACKET_HEADER_TYPE |
                      HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
                      HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE;
    __atomic_store_n((uint32_t *)packet, header | 1 << 16, __ATOMIC_RELEASE);
    hsa_signal_store_screlease(queue->doorbell_signal, index);
}

static void collect(void) {
    int (*collect)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "__llvm_profile_hip_collect_device_data");
    printf("collected: %d, %lu packets\n", collect(), hsa_queue_load_write_index_relaxed(busy));
}

static void use_hip(void) {
    int (*allocate)(void **, size_t) = (int (*)(void **, size_t))dlsym(RTLD_DEFAULT, "hipMalloc");
    int (*set)(void *, int, size_t) = (int (*)(void *, int, size_t))dlsym(RTLD_DEFAULT, "hipMemset");
    int (*synchronize)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "hipDeviceSynchronize");
    void *memory;
    if (allocate(&memory, 4096) || set(memory, 1, 4096) || synchronize())
        exit(1);
}

static hsa_status_t on_agent(hsa_agent_t agent, void *rounds) {
    hsa_device_type_t type;
    CHECK(hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type));
    if (type != HSA_DEVICE_TYPE_GPU)
        return HSA_STATUS_SUCCESS;
    gpu = agent;
    size_t size;
    void *bytes = read_file("module.hsaco", &size);
    dispatch(new_queue(HSA_QUEUE_TYPE_MULTI), load(bytes, size), *(int *)rounds);
    return HSA_STATUS_SUCCESS;
}

int main(int argc, char **argv) {
    const char *how = argv[1];
    int rounds = atoi(argv[2]);
    if (!strcmp(how, "every")) {
        start();
        CHECK(hsa_iterate_agents(on_agent, &rounds));
        return 0;
    }
    if (!getenv("DOWN") && strcmp(how, "destroyed"))
        atexit(print_indices);
    start();
    if (getenv("USE_HIP"))
        use_hip();
    size_t size;
    void *bytes = read_file("module.hsaco", &size);
    hsa_executable_t executable = load(bytes, size);
    busy = new_queue(strcmp(how, "single") ? HSA_QUEUE_TYPE_MULTI : HSA_QUEUE_TYPE_SINGLE);
    idle = new_queue(HSA_QUEUE_TYPE_MULTI);
    int kernels = strcmp(how, "full") ? 1 : busy->size;
    while (kernels--)
        dispatch(busy, executable, rounds);
    if (!strcmp(how, "again")) {
        collect();
        collect();
        dispatch(busy, executable, rounds);
    }
    if (!strcmp(how, "reset")) {
        int (*reset)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "devprof_reset_counters");
        printf("reset: %d\n", reset());
        dispatch(busy, executable, 10);
    }
    if (!strcmp(how, "destroyed"))
        CHECK(hsa_queue_destroy(busy));
    if (!strcmp(how, "inactive"))
        CHECK(hsa_queue_inactivate(busy));
    if (getenv("DOWN"))
        CHECK(hsa_shut_down());
}
