// A ROCr tool with which asynchronous copies take no time on the GPU model: the calling thread copies the bytes itself,
// which it can because the model's memory is the host's. On a GPU the copy engine copies, and the calling thread does not.
#define AMD_INTERNAL_BUILD
#include <hsa/hsa.h>
#include <hsa/hsa_api_trace.h>
#include <string.h>

static CoreApiTable core;
static AmdExtTable amd_ext;

static hsa_status_t copy(void *to, hsa_agent_t to_agent, const void *from, hsa_agent_t from_agent, size_t size,
                         uint32_t dependencies, const hsa_signal_t *signals, hsa_signal_t done) {
  if (dependencies)
    return amd_ext.hsa_amd_memory_async_copy_fn(to, to_agent, from, from_agent, size, dependencies, signals, done);
  memcpy(to, from, size);
  if (done.handle)
    core.hsa_signal_subtract_screlease_fn(done, 1);
  return HSA_STATUS_SUCCESS;
}

extern "C" bool OnLoad(HsaApiTable *table, uint64_t, uint64_t, const char *const *) {
  core = *table->core_;
  amd_ext = *table->amd_ext_;
  table->amd_ext_->hsa_amd_memory_async_copy_fn = copy;
  return true;
}

extern "C" void OnUnload() {}
