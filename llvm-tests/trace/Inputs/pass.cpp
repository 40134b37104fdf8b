// A tool for HSA_TOOLS_LIB that makes every queue an intercept queue and passes every packet on: shows what ROCr's
// intercept queues do by themselves, without devprof. If PASS_VERBOSE is set, it prints each batch on stderr. With
// -DWATCH it creates no intercept queue, but prints when the program creates and destroys a queue. With -DLIVE it
// calls the functions in ROCr's current tables, where other tools install theirs.
#define AMD_INTERNAL_BUILD
#include <hsa/hsa.h>
#include <hsa/hsa_api_trace.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

static CoreApiTable core;
static AmdExtTable amd_ext;
static const AmdExtTable *live;
static bool verbose;

static void pass(const void *packets, uint64_t count, uint64_t index, void *data,
                 hsa_amd_queue_intercept_packet_writer writer) {
    if (verbose) {
        auto *queue = (hsa_queue_t *)data;
        uint64_t inside = (const char *)packets - (const char *)queue->base_address;
        if (inside < 64ul * queue->size)
            fprintf(stderr, "pass: %lu packets from %lu, in the ring\n", count, index);
        else
            fprintf(stderr, "pass: %lu packets from %lu, a copy with capacity for %zu\n", count, index,
                    malloc_usable_size(const_cast<void *>(packets)) / 64);
    }
    writer(packets, count);
}

static hsa_status_t create(hsa_agent_t agent, uint32_t size, hsa_queue_type32_t type,
                           void (*callback)(hsa_status_t, hsa_queue_t *, void *), void *data, uint32_t private_size,
                           uint32_t group_size, hsa_queue_t **queue) {
#ifdef WATCH
    fprintf(stderr, "watch: a queue is created\n");
    return core.hsa_queue_create_fn(agent, size, type, callback, data, private_size, group_size, queue);
#else
    hsa_status_t status = live->hsa_amd_queue_intercept_create_fn(agent, size, type, callback, data, private_size,
                                                                  group_size, queue);
    return status != HSA_STATUS_SUCCESS ? status : live->hsa_amd_queue_intercept_register_fn(*queue, pass, *queue);
#endif
}

#ifdef WATCH
static hsa_status_t destroy(hsa_queue_t *queue) {
    fprintf(stderr, "watch: a queue is destroyed\n");
    return core.hsa_queue_destroy_fn(queue);
}
#endif

extern "C" bool OnLoad(HsaApiTable *table, uint64_t, uint64_t, const char *const *) {
    verbose = getenv("PASS_VERBOSE");
    core = *table->core_;
    amd_ext = *table->amd_ext_;
#ifdef LIVE
    live = table->amd_ext_;
#else
    live = &amd_ext;
#endif
    table->core_->hsa_queue_create_fn = create;
#ifdef WATCH
    table->core_->hsa_queue_destroy_fn = destroy;
#endif
    return true;
}

extern "C" void OnUnload() {}
