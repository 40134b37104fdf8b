// Runs the kernel of module.hip once, with 96 work-items. With the argument "down", shuts HSA down before it exits.
#include <fcntl.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(call)                                                                                                   \
    do {                                                                                                              \
        hsa_status_t status = (call);                                                                                 \
        if (status != HSA_STATUS_SUCCESS && status != HSA_STATUS_INFO_BREAK) {                                        \
            fprintf(stderr, "%s: %x\n", #call, status);                                                               \
            abort();                                                                                                  \
        }                                                                                                             \
    } while (0)

static hsa_agent_t gpu;
static hsa_amd_memory_pool_t kernel_arguments, memory;

static hsa_status_t visit_agent(hsa_agent_t agent, void *host) {
    hsa_device_type_t type;
    CHECK(hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type));
    if (type == HSA_DEVICE_TYPE_GPU)
        gpu = agent;
    else
        *(hsa_agent_t *)host = agent;
    return HSA_STATUS_SUCCESS;
}

static hsa_status_t visit_pool(hsa_amd_memory_pool_t pool, void *found) {
    hsa_amd_segment_t segment;
    uint32_t flags;
    CHECK(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment));
    if (segment != HSA_AMD_SEGMENT_GLOBAL)
        return HSA_STATUS_SUCCESS;
    CHECK(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &flags));
    if (found == &memory || flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT)
        *(hsa_amd_memory_pool_t *)found = pool;
    return HSA_STATUS_SUCCESS;
}

int main(int argc, char **argv) {
    hsa_agent_t host;
    CHECK(hsa_init());
    CHECK(hsa_iterate_agents(visit_agent, &host));
    CHECK(hsa_amd_agent_iterate_memory_pools(host, visit_pool, &kernel_arguments));
    CHECK(hsa_amd_agent_iterate_memory_pools(gpu, visit_pool, &memory));

    int file = open("module.hsaco", O_RDONLY);
    hsa_code_object_reader_t reader;
    hsa_executable_t executable;
    hsa_executable_symbol_t symbol;
    CHECK(hsa_code_object_reader_create_from_file(file, &reader));
    CHECK(hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, NULL, &executable));
    CHECK(hsa_executable_load_agent_code_object(executable, gpu, reader, NULL, NULL));
    CHECK(hsa_executable_freeze(executable, NULL));
    CHECK(hsa_executable_get_symbol_by_name(executable, "entry.kd", &gpu, &symbol));
    uint64_t object;
    uint32_t arguments_size, private_size, group_size;
    CHECK(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &object));
    CHECK(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE, &arguments_size));
    CHECK(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE, &private_size));
    CHECK(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE, &group_size));

    void **arguments, *out;
    CHECK(hsa_amd_memory_pool_allocate(kernel_arguments, 4096, 0, (void **)&arguments));
    CHECK(hsa_amd_agents_allow_access(1, &gpu, NULL, arguments));
    CHECK(hsa_amd_memory_pool_allocate(memory, 4096, 0, &out));
    memset(arguments, 0, arguments_size);
    arguments[0] = out;

    hsa_queue_t *queue;
    hsa_signal_t done;
    CHECK(hsa_queue_create(gpu, 64, HSA_QUEUE_TYPE_MULTI, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue));
    CHECK(hsa_signal_create(1, 0, NULL, &done));
    uint64_t index = hsa_queue_add_write_index_relaxed(queue, 1);
    hsa_kernel_dispatch_packet_t *packet = (hsa_kernel_dispatch_packet_t *)queue->base_address + index % queue->size;
    memset((char *)packet + 4, 0, sizeof *packet - 4);
    packet->workgroup_size_x = 96, packet->workgroup_size_y = packet->workgroup_size_z = 1;
    packet->grid_size_x = 96, packet->grid_size_y = packet->grid_size_z = 1;
    packet->private_segment_size = private_size;
    packet->group_segment_size = group_size;
    packet->kernel_object = object;
    packet->kernarg_address = arguments;
    packet->completion_signal = done;
    uint16_t header = HSA_PACKET_TYPE_KERNEL_DISPATCH << HSA_PACKET_HEADER_TYPE |
                      HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
                      HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE;
    uint16_t setup = 1 << HSA_KERNEL_DISPATCH_PACKET_SETUP_DIMENSIONS;
    __atomic_store_n((uint32_t *)packet, header | setup << 16, __ATOMIC_RELEASE);
    hsa_signal_store_screlease(queue->doorbell_signal, index);
    hsa_signal_wait_scacquire(done, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX, HSA_WAIT_STATE_BLOCKED);

    if (argc > 1 && !strcmp(argv[1], "down"))
        CHECK(hsa_shut_down());
}
