// A tool for HSA_TOOLS_LIB, listed before devprof, so that devprof calls it: a runtime in which devprof's threads hold a lock in
// each call, for as long as a busy machine may need, and which takes the lock when the process exits. ROCr has such locks, but
// devprof holds them so briefly that a fork hardly ever meets one. Prints which threads of devprof have held the lock.
#define AMD_INTERNAL_BUILD
#include <atomic>
#include <hsa/hsa.h>
#include <hsa/hsa_api_trace.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static CoreApiTable core;
static AmdExtTable amd_ext;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static std::atomic<int> snapshots, traces;
static pid_t process;

struct Held {
    bool is_held;
    Held() {
        char name[16] = "";
        pthread_getname_np(pthread_self(), name, sizeof name);
        bool is_snapshot = !strcmp(name, "devprof-snap"), is_trace = !strcmp(name, "devprof-trace");
        snapshots += is_snapshot;
        traces += is_trace;
        is_held = is_snapshot || is_trace;
        if (is_held) {
            pthread_mutex_lock(&lock);
            usleep(500);
        }
    }
    ~Held() {
        if (is_held)
            pthread_mutex_unlock(&lock);
    }
};

static hsa_status_t copy(void *to, const void *from, size_t size) {
    Held held;
    return core.hsa_memory_copy_fn(to, from, size);
}

static hsa_status_t async_copy(void *to, hsa_agent_t to_agent, const void *from, hsa_agent_t from_agent, size_t size, uint32_t count,
                               const hsa_signal_t *signals, hsa_signal_t done) {
    Held held;
    return amd_ext.hsa_amd_memory_async_copy_fn(to, to_agent, from, from_agent, size, count, signals, done);
}

static hsa_status_t dispatch_time(hsa_agent_t agent, hsa_signal_t signal, hsa_amd_profiling_dispatch_time_t *time) {
    Held held;
    return amd_ext.hsa_amd_profiling_get_dispatch_time_fn(agent, signal, time);
}

static hsa_status_t convert(hsa_agent_t agent, uint64_t ticks, uint64_t *time) {
    Held held;
    return amd_ext.hsa_amd_profiling_convert_tick_to_system_domain_fn(agent, ticks, time);
}

static hsa_status_t system_info(hsa_system_info_t attribute, void *value) {
    Held held;
    return core.hsa_system_get_info_fn(attribute, value);
}

static void at_exit() {
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
    if (getpid() == process)
        fprintf(stderr, "held by snapshots: %s, by the trace: %s\n", snapshots > 0 ? "yes" : "no", traces > 0 ? "yes" : "no");
}

extern "C" bool OnLoad(HsaApiTable *table, uint64_t, uint64_t, const char *const *) {
    process = getpid();
    core = *table->core_;
    amd_ext = *table->amd_ext_;
    table->core_->hsa_memory_copy_fn = copy;
    table->core_->hsa_system_get_info_fn = system_info;
    table->amd_ext_->hsa_amd_memory_async_copy_fn = async_copy;
    table->amd_ext_->hsa_amd_profiling_get_dispatch_time_fn = dispatch_time;
    table->amd_ext_->hsa_amd_profiling_convert_tick_to_system_domain_fn = convert;
    atexit(at_exit);
    return true;
}

extern "C" void OnUnload() {}
