// A tool for HSA_TOOLS_LIB that prints the batches of asynchronous copies: those that are requested before a wait. Also
// prints the synchronous copies, and, when HSA is shut down, the number of large allocations of memory pools that were
// not freed. With LIMIT=BYTES, larger allocations fail. With REFUSE, asynchronous copies to the device and all synchronous
// copies fail.
#define AMD_INTERNAL_BUILD
#include <hsa/hsa.h>
#include <hsa/hsa_api_trace.h>
#include <set>
#include <stdio.h>
#include <stdlib.h>

static AmdExtTable amd_ext;
static CoreApiTable core;
static int to_device, from_device;
static size_t limit = SIZE_MAX;
static bool refuse;
// Not destroyed, because HSA is shut down after this library's destructors.
static std::set<void *> &large = *new std::set<void *>;

static bool is_cpu(hsa_agent_t agent) {
    hsa_device_type_t type;
    return core.hsa_agent_get_info_fn(agent, HSA_AGENT_INFO_DEVICE, &type) == HSA_STATUS_SUCCESS &&
           type == HSA_DEVICE_TYPE_CPU;
}

static hsa_status_t async_copy(void *to, hsa_agent_t to_agent, const void *from, hsa_agent_t from_agent, size_t size,
                               uint32_t dependencies, const hsa_signal_t *signals, hsa_signal_t done) {
    if (refuse && is_cpu(from_agent))
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    to_device += is_cpu(from_agent);
    from_device += is_cpu(to_agent);
    return amd_ext.hsa_amd_memory_async_copy_fn(to, to_agent, from, from_agent, size, dependencies, signals, done);
}

static hsa_signal_value_t wait(hsa_signal_t signal, hsa_signal_condition_t condition, hsa_signal_value_t value,
                               uint64_t timeout, hsa_wait_state_t state) {
    if (to_device || from_device)
        printf("batch: %d to the device, %d from the device\n", to_device, from_device);
    to_device = from_device = 0;
    return core.hsa_signal_wait_scacquire_fn(signal, condition, value, timeout, state);
}

static hsa_status_t copy(void *to, const void *from, size_t size) {
    printf("hsa_memory_copy\n");
    return refuse ? HSA_STATUS_ERROR_OUT_OF_RESOURCES : core.hsa_memory_copy_fn(to, from, size);
}

static hsa_status_t allocate(hsa_amd_memory_pool_t pool, size_t size, uint32_t flags, void **result) {
    if (size > limit) {
        printf("no memory\n");
        return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
    }
    hsa_status_t status = amd_ext.hsa_amd_memory_pool_allocate_fn(pool, size, flags, result);
    if (status == HSA_STATUS_SUCCESS && size >= 1 << 16)
        large.insert(*result);
    return status;
}

static hsa_status_t free_memory(void *memory) {
    large.erase(memory);
    return amd_ext.hsa_amd_memory_pool_free_fn(memory);
}

static hsa_status_t shut_down() {
    printf("allocated: %zu\n", large.size());
    return core.hsa_shut_down_fn();
}

extern "C" bool OnLoad(HsaApiTable *table, uint64_t, uint64_t, const char *const *) {
    if (const char *bytes = getenv("LIMIT"))
        limit = strtoull(bytes, nullptr, 0);
    refuse = getenv("REFUSE");
    amd_ext = *table->amd_ext_;
    core = *table->core_;
    table->core_->hsa_signal_wait_scacquire_fn = wait;
    table->core_->hsa_memory_copy_fn = copy;
    table->core_->hsa_shut_down_fn = shut_down;
    table->amd_ext_->hsa_amd_memory_async_copy_fn = async_copy;
    table->amd_ext_->hsa_amd_memory_pool_allocate_fn = allocate;
    table->amd_ext_->hsa_amd_memory_pool_free_fn = free_memory;
    return true;
}

extern "C" void OnUnload() {}
