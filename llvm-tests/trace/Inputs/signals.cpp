// A tool for HSA_TOOLS_LIB, listed before devprof, so that devprof calls it: counts the signals that devprof and all
// others create, and prints on stderr how many of each exist when HSA is shut down. Also without devprof, a program with
// interrupts needs this tool: see keep_event().
#define AMD_INTERNAL_BUILD
#include <dlfcn.h>
#include <hsa/hsa.h>
#include <hsa/hsa_api_trace.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static AmdExtTable amd_ext;
static CoreApiTable core;
// The signals that exist, in lists by their handles. (The headers of std::map would take most of the time to compile this file.)
struct Signal {
    uint64_t handle;
    int owner;
    Signal *next;
};
static Signal *signals[1 << 12];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long made[2], destroyed[2];

// The pointer to a signal, which is null if there is none.
static Signal **find(uint64_t handle) {
    Signal **at = &signals[handle * 0x9e3779b97f4a7c15 >> 52];
    while (*at && (*at)->handle != handle)
        at = &(*at)->next;
    return at;
}

static void count(hsa_status_t status, hsa_signal_t signal, void *caller) {
    Dl_info from = {};
    dladdr(caller, &from);
    int owner = from.dli_fname && strstr(from.dli_fname, "libdevprof");
    if (status != HSA_STATUS_SUCCESS)
        return;
    pthread_mutex_lock(&lock);
    Signal **found = find(signal.handle);
    if (!*found)
        *found = (Signal *)calloc(1, sizeof(Signal));
    (*found)->handle = signal.handle;
    (*found)->owner = owner;
    made[owner]++;
    pthread_mutex_unlock(&lock);
}

static hsa_status_t create(hsa_signal_value_t value, uint32_t consumer_count, const hsa_agent_t *consumers,
                           hsa_signal_t *signal) {
    hsa_status_t status = core.hsa_signal_create_fn(value, consumer_count, consumers, signal);
    count(status, *signal, __builtin_return_address(0));
    return status;
}

static hsa_status_t amd_create(hsa_signal_value_t value, uint32_t consumer_count, const hsa_agent_t *consumers,
                               uint64_t attributes, hsa_signal_t *signal) {
    hsa_status_t status = amd_ext.hsa_amd_signal_create_fn(value, consumer_count, consumers, attributes, signal);
    count(status, *signal, __builtin_return_address(0));
    return status;
}

static hsa_status_t destroy(hsa_signal_t signal) {
    pthread_mutex_lock(&lock);
    Signal **found = find(signal.handle);
    if (Signal *old = *found) {
        destroyed[old->owner]++;
        *found = old->next;
        free(old);
    }
    pthread_mutex_unlock(&lock);
    return core.hsa_signal_destroy_fn(signal);
}

static hsa_status_t shut_down() {
    fprintf(stderr, "signals: devprof created %ld, %ld remain; others created %ld, %ld remain\n", made[1],
            made[1] - destroyed[1], made[0], made[0] - destroyed[0]);
    return core.hsa_shut_down_fn();
}

static hsa_status_t find_gpu(hsa_agent_t agent, void *gpu) {
    hsa_device_type_t type;
    core.hsa_agent_get_info_fn(agent, HSA_AGENT_INFO_DEVICE, &type);
    if (type != HSA_DEVICE_TYPE_GPU)
        return HSA_STATUS_SUCCESS;
    *(hsa_agent_t *)gpu = agent;
    return HSA_STATUS_INFO_BREAK;
}

// With interrupts, all queues of ROCr 7.2.4 share an event, which the last queue destroys (~AqlQueue in amd_aql_queue.cpp).
// ROCr's thread may still be about to set it: it changes the signal that ~AqlQueue waits for, then sets the event. A kernel
// driver returns an error; the model mode calls abort ("model_set_event: event_id = 6 is not allocated"). A queue that is
// never destroyed keeps the event.
static void keep_event() {
    hsa_agent_t gpu = {};
    hsa_queue_t *queue;
    core.hsa_iterate_agents_fn(find_gpu, &gpu);
    if (core.hsa_queue_create_fn(gpu, 64, HSA_QUEUE_TYPE_SINGLE, nullptr, nullptr, 0, 0, &queue))
        abort();
}

extern "C" bool OnLoad(HsaApiTable *table, uint64_t, uint64_t, const char *const *) {
    amd_ext = *table->amd_ext_;
    core = *table->core_;
    table->core_->hsa_signal_create_fn = create;
    table->core_->hsa_signal_destroy_fn = destroy;
    table->core_->hsa_shut_down_fn = shut_down;
    table->amd_ext_->hsa_amd_signal_create_fn = amd_create;
    const char *interrupts = getenv("HSA_ENABLE_INTERRUPT");
    if (interrupts && !strcmp(interrupts, "1"))
        keep_event();
    return true;
}

extern "C" void OnUnload() {}
