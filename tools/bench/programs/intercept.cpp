// The two ROCr tools that devprof is compared with. The pass-through tool makes every queue an intercept queue and
// passes every packet on. With -DNAIVE, each dispatch and each copy also gets a new signal with a handler, which reads the
// times, completes the program's signal and destroys its own.
#define AMD_INTERNAL_BUILD
#include <algorithm>
#include <hsa/hsa.h>
#include <hsa/hsa_api_trace.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <vector>

static CoreApiTable core;
static AmdExtTable amd_ext;

[[maybe_unused]] static void check(hsa_status_t status, const char *what) {
  if (status != HSA_STATUS_SUCCESS) {
    fprintf(stderr, "%s failed: %#x\n", what, unsigned(status));
    abort();
  }
}

#ifdef NAIVE
struct Dispatch {
  hsa_agent_t agent; // of a kernel; 0: a copy
  hsa_signal_t signal, program;
  uint64_t kernel_object;
};

// Only ROCr's handler thread writes these.
uint64_t total;         // kernel ticks
uint64_t busy, handled; // nanoseconds of CPU time in the handler, and its calls

static uint64_t cpu_time() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * 1000000000ull + time.tv_nsec;
}

extern "C" uint64_t handler_time() { return __atomic_load_n(&busy, __ATOMIC_RELAXED); }
extern "C" uint64_t handler_calls() { return __atomic_load_n(&handled, __ATOMIC_RELAXED); }

static bool completed(hsa_signal_value_t, void *data) {
  static const uint64_t clock_cost = [] {
    std::vector<uint64_t> all(1001);
    for (uint64_t &time : all) {
      uint64_t begin = cpu_time();
      time = cpu_time() - begin;
    }
    std::nth_element(all.begin(), all.begin() + 500, all.end());
    return all[500];
  }();
  uint64_t begin = cpu_time();
  auto dispatch = static_cast<Dispatch *>(data);
  if (dispatch->agent.handle) {
    hsa_amd_profiling_dispatch_time_t time = {};
    check(amd_ext.hsa_amd_profiling_get_dispatch_time_fn(dispatch->agent, dispatch->signal, &time), "dispatch time");
    total += time.end - time.start;
  } else {
    hsa_amd_profiling_async_copy_time_t time = {};
    check(amd_ext.hsa_amd_profiling_get_async_copy_time_fn(dispatch->signal, &time), "copy time");
    total += time.end - time.start;
  }
  if (dispatch->program.handle)
    core.hsa_signal_subtract_screlease_fn(dispatch->program, 1);
  core.hsa_signal_destroy_fn(dispatch->signal);
  delete dispatch;
  __atomic_store_n(&busy, busy + cpu_time() - begin - clock_cost, __ATOMIC_RELAXED);
  __atomic_store_n(&handled, handled + 1, __ATOMIC_RELAXED);
  return false;
}

static hsa_signal_t new_signal(Dispatch *dispatch) {
  check(core.hsa_signal_create_fn(1, 0, nullptr, &dispatch->signal), "hsa_signal_create");
  check(amd_ext.hsa_amd_signal_async_handler_fn(dispatch->signal, HSA_SIGNAL_CONDITION_LT, 1, completed, dispatch),
        "hsa_amd_signal_async_handler");
  return dispatch->signal;
}

static hsa_status_t copy(void *to, hsa_agent_t to_agent, const void *from, hsa_agent_t from_agent, size_t size,
                         uint32_t dependencies, const hsa_signal_t *signals, hsa_signal_t done) {
  return amd_ext.hsa_amd_memory_async_copy_fn(to, to_agent, from, from_agent, size, dependencies, signals,
                                              new_signal(new Dispatch{{}, {}, done, 0}));
}

static void intercept(const void *packets, uint64_t count, uint64_t, void *agent,
                      hsa_amd_queue_intercept_packet_writer write) {
  static thread_local std::vector<hsa_kernel_dispatch_packet_t> batch;
  auto first = static_cast<const hsa_kernel_dispatch_packet_t *>(packets);
  batch.assign(first, first + count);
  for (auto &packet : batch) {
    if ((packet.header & 0xff) != HSA_PACKET_TYPE_KERNEL_DISPATCH)
      continue;
    packet.completion_signal = new_signal(
        new Dispatch{{reinterpret_cast<uint64_t>(agent)}, {}, packet.completion_signal, packet.kernel_object});
  }
  write(batch.data(), count);
}
#else
static void intercept(const void *packets, uint64_t count, uint64_t, void *,
                      hsa_amd_queue_intercept_packet_writer write) {
  write(packets, count);
}
#endif

static hsa_status_t create(hsa_agent_t agent, uint32_t size, hsa_queue_type32_t type,
                           void (*callback)(hsa_status_t, hsa_queue_t *, void *), void *data, uint32_t private_size,
                           uint32_t group_size, hsa_queue_t **queue) {
  hsa_status_t status = amd_ext.hsa_amd_queue_intercept_create_fn(agent, size, type, callback, data, private_size,
                                                                  group_size, queue);
  if (status == HSA_STATUS_SUCCESS)
    status = amd_ext.hsa_amd_profiling_set_profiler_enabled_fn(*queue, 1);
  if (status == HSA_STATUS_SUCCESS)
    status = amd_ext.hsa_amd_queue_intercept_register_fn(*queue, intercept, reinterpret_cast<void *>(agent.handle));
  return status;
}

extern "C" bool OnLoad(HsaApiTable *table, uint64_t, uint64_t, const char *const *) {
  core = *table->core_;
  amd_ext = *table->amd_ext_;
  table->core_->hsa_queue_create_fn = create;
#ifdef NAIVE
  if (getenv("NAIVE_COPIES")) {
    amd_ext.hsa_amd_profiling_async_copy_enable_fn(true);
    table->amd_ext_->hsa_amd_memory_async_copy_fn = copy;
  }
#endif
  return true;
}

extern "C" void OnUnload() {}
