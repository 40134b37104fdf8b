// Copies 64 bytes to the device and to the host, alternating, with hsa_amd_memory_async_copy. All copies complete the same
// signal.
#include "measure.h"
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#define CHECK(call)                                                                                                    \
  do {                                                                                                                 \
    hsa_status_t status_ = (call);                                                                                     \
    if (status_ != HSA_STATUS_SUCCESS)                                                                                 \
      fail(#call, status_);                                                                                            \
  } while (0)

enum { SIZE = 64 };

static hsa_agent_t cpu, gpu;

static hsa_status_t find_agent(hsa_agent_t agent, void *) {
  hsa_device_type_t type;
  CHECK(hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type));
  (type == HSA_DEVICE_TYPE_GPU ? gpu : cpu) = agent;
  return HSA_STATUS_SUCCESS;
}

static hsa_status_t find_pool(hsa_amd_memory_pool_t pool, void *found) {
  hsa_amd_segment_t segment;
  bool is_allowed;
  CHECK(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment));
  CHECK(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED, &is_allowed));
  if (segment != HSA_AMD_SEGMENT_GLOBAL || !is_allowed)
    return HSA_STATUS_SUCCESS;
  *(hsa_amd_memory_pool_t *)found = pool;
  return HSA_STATUS_INFO_BREAK;
}

// Memory of `agent` that the GPU and the CPU can access.
static void *memory_of(hsa_agent_t agent) {
  hsa_amd_memory_pool_t pool = {};
  void *memory;
  hsa_amd_agent_iterate_memory_pools(agent, find_pool, &pool);
  CHECK(hsa_amd_memory_pool_allocate(pool, SIZE, 0, &memory));
  CHECK(hsa_amd_agents_allow_access(1, &gpu, nullptr, memory));
  return memory;
}

struct Copier {
  void *host = memory_of(cpu), *device = memory_of(gpu);
  hsa_signal_t done;
  hsa_signal_value_t expected = INT64_MAX / 2;

  Copier() { CHECK(hsa_signal_create(expected, 0, nullptr, &done)); }
  void launch() {
    if (expected-- & 1)
      CHECK(hsa_amd_memory_async_copy(device, gpu, host, cpu, SIZE, 0, nullptr, done));
    else
      CHECK(hsa_amd_memory_async_copy(host, cpu, device, gpu, SIZE, 0, nullptr, done));
  }
  void finish() {
    await([&] { return hsa_signal_load_scacquire(done) == expected; });
  }
};

int main() {
  CHECK(hsa_init());
  CHECK(hsa_iterate_agents(find_agent, nullptr));
  std::vector<std::unique_ptr<Copier>> copiers;
  copiers.emplace_back(new Copier);
  measure(1, copiers);
}
