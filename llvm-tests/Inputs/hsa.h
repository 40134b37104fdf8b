// Shared by the test programs that use HSA. They print what the runtime returns, except for values that differ between
// two runs, because the output on ROCr and on the simulator must be the same.
#pragma once

#include <fcntl.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <hsa/hsa_ven_amd_loader.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(call)                                                                      \
    do {                                                                                 \
        hsa_status_t status_ = (call);                                                   \
        if (status_ != HSA_STATUS_SUCCESS) {                                             \
            printf("%s:%d: %s: %#x\n", __FILE_NAME__, __LINE__, #call, (unsigned)status_); \
            exit(1);                                                                     \
        }                                                                                \
    } while (0)

// Makes a call and prints its status.
#define STATUS(call) printf("%s: %#x\n", #call, (unsigned)(call))

// The first CPU, the first GPU, and all GPUs.
enum { GPUS = 8 };
static hsa_agent_t cpu, gpu, gpus[GPUS];
static int gpu_count;

static hsa_status_t find_agent(hsa_agent_t agent, void *data) {
    (void)data;
    hsa_device_type_t type;
    CHECK(hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type));
    if (type == HSA_DEVICE_TYPE_GPU && gpu_count < GPUS) {
        gpus[gpu_count++] = agent;
        gpu = gpus[0];
    }
    if (type == HSA_DEVICE_TYPE_CPU && !cpu.handle)
        cpu = agent;
    return HSA_STATUS_SUCCESS;
}

struct wanted {
    uint32_t flags;
    hsa_amd_memory_pool_t pool;
};

static hsa_status_t find_pool(hsa_amd_memory_pool_t pool, void *data) {
    struct wanted *wanted = data;
    hsa_amd_segment_t segment;
    uint32_t flags = 0;
    CHECK(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment));
    if (segment != HSA_AMD_SEGMENT_GLOBAL)
        return HSA_STATUS_SUCCESS;
    CHECK(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &flags));
    if ((flags & wanted->flags) == wanted->flags && !wanted->pool.handle)
        wanted->pool = pool;
    return HSA_STATUS_SUCCESS;
}

static inline hsa_amd_memory_pool_t pool_of(hsa_agent_t agent, uint32_t flags) {
    struct wanted wanted = {flags, {0}};
    CHECK(hsa_amd_agent_iterate_memory_pools(agent, find_pool, &wanted));
    return wanted.pool;
}

static inline void *host_memory(size_t size) {
    void *memory;
    hsa_amd_memory_pool_t pool = pool_of(cpu, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT);
    CHECK(hsa_amd_memory_pool_allocate(pool, size, 0, &memory));
    CHECK(hsa_amd_agents_allow_access(1, &gpu, NULL, memory));
    return memset(memory, 0, size);
}

static inline void *read_file(const char *name, size_t *size) {
    FILE *file = fopen(name, "rb");
    if (!file) {
        perror(name);
        exit(1);
    }
    fseek(file, 0, SEEK_END);
    *size = ftell(file);
    rewind(file);
    void *bytes = malloc(*size);
    if (fread(bytes, 1, *size, file) != *size)
        exit(1);
    fclose(file);
    return bytes;
}

static inline hsa_executable_t load_on(hsa_agent_t agent, const void *bytes, size_t size) {
    hsa_code_object_reader_t reader;
    hsa_executable_t executable;
    CHECK(hsa_code_object_reader_create_from_memory(bytes, size, &reader));
    CHECK(hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, NULL, &executable));
    CHECK(hsa_executable_load_agent_code_object(executable, agent, reader, NULL, NULL));
    CHECK(hsa_executable_freeze(executable, NULL));
    CHECK(hsa_code_object_reader_destroy(reader));
    return executable;
}

static inline hsa_executable_t load(const void *bytes, size_t size) { return load_on(gpu, bytes, size); }

static inline uint64_t symbol_u64(hsa_executable_t executable, const char *name, hsa_executable_symbol_info_t attribute) {
    hsa_executable_symbol_t symbol;
    uint64_t value = 0;
    CHECK(hsa_executable_get_symbol_by_name(executable, name, &gpu, &symbol));
    CHECK(hsa_executable_symbol_get_info(symbol, attribute, &value));
    return value;
}

static inline hsa_queue_t *queue_of(uint32_t size, hsa_queue_type32_t type) {
    hsa_queue_t *queue;
    CHECK(hsa_queue_create(gpu, size, type, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue));
    return queue;
}

static inline hsa_signal_t signal_of(hsa_signal_value_t value) {
    hsa_signal_t signal;
    CHECK(hsa_signal_create(value, 0, NULL, &signal));
    return signal;
}

static inline void await(hsa_signal_t signal) {
    while (hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX, HSA_WAIT_STATE_BLOCKED) >= 1)
        ;
}

static inline uint16_t header_of(int type, bool barrier) {
    return type << HSA_PACKET_HEADER_TYPE | barrier << HSA_PACKET_HEADER_BARRIER |
           HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
           HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE;
}

// Writes a packet, its header last.
static inline void put(hsa_queue_t *queue, uint64_t index, void *packet, uint16_t header) {
    char *slot = (char *)queue->base_address + 64 * (index % queue->size);
    memcpy(slot + 4, (char *)packet + 4, 60);
    uint32_t first;
    memcpy(&first, packet, 4);
    __atomic_store_n((uint32_t *)slot, (first & 0xffff0000) | header, __ATOMIC_RELEASE);
}

static inline void ring(hsa_queue_t *queue, uint64_t index) {
    hsa_signal_store_screlease(queue->doorbell_signal, index);
}

// Writes a dispatch of one workgroup into the queue, which is not full.
static inline void launch_kernel(hsa_queue_t *queue, hsa_executable_t executable, const char *kernel, uint16_t work_items, void *arguments,
                                 hsa_signal_t done, bool barrier) {
    hsa_kernel_dispatch_packet_t packet = {0};
    packet.setup = 1;
    packet.workgroup_size_x = packet.grid_size_x = work_items;
    packet.workgroup_size_y = packet.workgroup_size_z = packet.grid_size_y = packet.grid_size_z = 1;
    packet.private_segment_size = symbol_u64(executable, kernel, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE);
    packet.group_segment_size = symbol_u64(executable, kernel, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE);
    packet.kernel_object = symbol_u64(executable, kernel, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT);
    packet.kernarg_address = arguments;
    packet.completion_signal = done;
    uint64_t index = hsa_queue_add_write_index_scacq_screl(queue, 1);
    put(queue, index, &packet, header_of(HSA_PACKET_TYPE_KERNEL_DISPATCH, barrier));
    ring(queue, index);
}

// Reads `count` counters of a function. If devprof has set up copies of them, the sums.
static inline void read_counters(hsa_executable_t executable, const char *name, uint64_t *to, unsigned count) {
    uint64_t *values = host_memory(4096);
    struct {
        uint64_t offset;
        uint32_t stride, full, mask, unit;
    } copies = {0};
    hsa_executable_symbol_t symbol;
    if (hsa_executable_get_symbol_by_name(executable, "__devprof_counter_copies", &gpu, &symbol) == HSA_STATUS_SUCCESS) {
        uint64_t variable;
        CHECK(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS, &variable));
        CHECK(hsa_memory_copy(values, (void *)variable, sizeof copies));
        memcpy(&copies, values, sizeof copies);
    }
    uint64_t from = symbol_u64(executable, name, HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS);
    CHECK(hsa_memory_copy(values, (void *)from, 8 * count));
    memcpy(to, values, 8 * count);
    for (uint64_t copy = 0; copies.full && copy < 2 * ((uint64_t)copies.mask + 1); copy++) {
        CHECK(hsa_memory_copy(values, (void *)(from + copies.offset + copy * copies.full), 8 * count));
        for (unsigned n = 0; n < count; n++)
            to[n] += values[n];
    }
    CHECK(hsa_amd_memory_pool_free(values));
}

static inline void start(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    CHECK(hsa_init());
    gpu_count = 0;
    CHECK(hsa_iterate_agents(find_agent, NULL));
}
