// A ROCr tool that traces copies as one would first write it: each copy gets a new signal with a handler, which reads the
// times, completes the program's signal and destroys its own.
#define AMD_INTERNAL_BUILD
#include <hsa/hsa.h>
#include <hsa/hsa_api_trace.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static CoreApiTable core;
static AmdExtTable amd_ext;
uint64_t total; // Only ROCr's handler thread writes it.

struct Copy {
  hsa_signal_t signal, program;
};

static void check(hsa_status_t status, const char *what) {
  if (status != HSA_STATUS_SUCCESS) {
    fprintf(stderr, "%s failed: %#x\n", what, unsigned(status));
    abort();
  }
}

static bool completed(hsa_signal_value_t, void *data) {
  auto copy = static_cast<Copy *>(data);
  hsa_amd_profiling_async_copy_time_t time = {};
  check(amd_ext.hsa_amd_profiling_get_async_copy_time_fn(copy->signal, &time), "copy time");
  total += time.end - time.start;
  core.hsa_signal_subtract_screlease_fn(copy->program, 1);
  core.hsa_signal_destroy_fn(copy->signal);
  delete copy;
  return false;
}

static hsa_status_t async_copy(void *to, hsa_agent_t to_agent, const void *from, hsa_agent_t from_agent, size_t size,
                               uint32_t count, const hsa_signal_t *dependencies, hsa_signal_t completion) {
  auto copy = new Copy{{}, completion};
  check(core.hsa_signal_create_fn(1, 0, nullptr, &copy->signal), "hsa_signal_create");
  check(amd_ext.hsa_amd_signal_async_handler_fn(copy->signal, HSA_SIGNAL_CONDITION_LT, 1, completed, copy),
        "hsa_amd_signal_async_handler");
  return amd_ext.hsa_amd_memory_async_copy_fn(to, to_agent, from, from_agent, size, count, dependencies, copy->signal);
}

extern "C" bool OnLoad(HsaApiTable *table, uint64_t, uint64_t, const char *const *) {
  core = *table->core_;
  amd_ext = *table->amd_ext_;
  check(amd_ext.hsa_amd_profiling_async_copy_enable_fn(true), "hsa_amd_profiling_async_copy_enable");
  table->amd_ext_->hsa_amd_memory_async_copy_fn = async_copy;
  return true;
}

extern "C" void OnUnload() {}
