// A tool for HSA_TOOLS_LIB that prints the tables it gets and every packet of every queue.
#define AMD_INTERNAL_BUILD
#include <hsa/hsa.h>
#include <hsa/hsa_api_trace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static CoreApiTable core;
static AmdExtTable amd_ext;
static int packets[256];

static void write_on(const void *packet, uint64_t count, uint64_t, void *, hsa_amd_queue_intercept_packet_writer writer) {
    writer(packet, count);
}

static void count(const void *packet, uint64_t number, uint64_t index, void *data, hsa_amd_queue_intercept_packet_writer writer) {
    for (uint64_t n = 0; n < number; ++n) {
        uint16_t header;
        memcpy(&header, (const char *)packet + 64 * n, 2);
        printf("tool: packet %lu of type %u, %s\n", index + n, header & 0xff, (const char *)data);
        ++packets[header & 0xff];
    }
    writer(packet, number);
}

static hsa_status_t create(hsa_agent_t agent, uint32_t size, hsa_queue_type32_t type,
                           void (*callback)(hsa_status_t, hsa_queue_t *, void *), void *data, uint32_t private_size,
                           uint32_t group_size, hsa_queue_t **queue) {
    hsa_status_t status = amd_ext.hsa_amd_queue_intercept_create_fn(agent, size, type, callback, data, private_size, group_size, queue);
    if (status != HSA_STATUS_SUCCESS)
        return status;
    printf("tool: queue of %u\n", (*queue)->size);
    static char counted[] = "counted";
    amd_ext.hsa_amd_profiling_set_profiler_enabled_fn(*queue, 1);
    status = amd_ext.hsa_amd_queue_intercept_register_fn(*queue, write_on, nullptr);
    return status != HSA_STATUS_SUCCESS ? status : amd_ext.hsa_amd_queue_intercept_register_fn(*queue, count, counted);
}

static hsa_status_t destroyed(hsa_executable_t executable) {
    printf("tool: an executable is destroyed\n");
    return core.hsa_executable_destroy_fn(executable);
}

static void print(const char *name, const ApiTableVersion &version) {
    printf("tool: %s %u.%u step %u\n", name, version.major_id, version.minor_id, version.step_id);
}

extern "C" bool OnLoad(HsaApiTable *table, uint64_t, uint64_t failed, const char *const *) {
    setvbuf(stdout, nullptr, _IOLBF, 0);
    printf("tool: OnLoad, %lu failed\n", failed);
    print("table", table->version);
    print("core", table->core_->version);
    print("amd_ext", table->amd_ext_->version);
    print("tools", table->tools_->version);
    print("pc_sampling", table->pc_sampling_ext_->version);
    core = *table->core_;
    amd_ext = *table->amd_ext_;
    table->core_->hsa_queue_create_fn = create;
    table->core_->hsa_executable_destroy_fn = destroyed;
    // A tool may use HSA here.
    uint64_t ticks;
    printf("tool: alive %#x\n", (unsigned)core.hsa_system_get_info_fn(HSA_SYSTEM_INFO_TIMESTAMP, &ticks));
    return !getenv("TOOL_INITIALIZES") || core.hsa_init_fn() == HSA_STATUS_SUCCESS;
}

extern "C" void OnUnload() {
    printf("tool: OnUnload after %d kernels and %d barriers\n", packets[HSA_PACKET_TYPE_KERNEL_DISPATCH],
           packets[HSA_PACKET_TYPE_BARRIER_AND]);
}
