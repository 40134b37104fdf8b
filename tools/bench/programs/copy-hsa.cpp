// Copies a few bytes at a time with HSA's functions. Measures what a copy and the reset of its signal cost the thread that
// requests it. Prints nanoseconds of CPU time per copy, the median of groups of copies, and the number of copies.
#include "measure.h"
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

enum { BYTES = 64 };

static hsa_agent_t gpu, cpu;

static hsa_status_t find_agents(hsa_agent_t agent, void *) {
  hsa_device_type_t type;
  CHECK(hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type));
  (type == HSA_DEVICE_TYPE_GPU ? gpu : cpu) = agent;
  return HSA_STATUS_SUCCESS;
}

static hsa_status_t find_pool(hsa_amd_memory_pool_t pool, void *found) {
  hsa_amd_segment_t segment;
  bool allowed = false;
  CHECK(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment));
  CHECK(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED, &allowed));
  if (segment == HSA_AMD_SEGMENT_GLOBAL && allowed)
    *(hsa_amd_memory_pool_t *)found = pool;
  return HSA_STATUS_SUCCESS;
}

static void *allocate(hsa_agent_t agent) {
  hsa_amd_memory_pool_t pool;
  void *memory;
  CHECK(hsa_amd_agent_iterate_memory_pools(agent, find_pool, &pool));
  CHECK(hsa_amd_memory_pool_allocate(pool, 4096, 0, &memory));
  CHECK(hsa_amd_agents_allow_access(1, &gpu, nullptr, memory));
  return memory;
}

// ROCr's own queue has space for a group of copies.
enum { GROUP = 32, GROUPS = 3000, WARM_UP_GROUPS = 500 };

int main() {
  CHECK(hsa_init());
  CHECK(hsa_iterate_agents(find_agents, nullptr));
  void *to = allocate(gpu), *from = allocate(cpu);
  hsa_signal_t done[GROUP];
  for (hsa_signal_t &signal : done)
    CHECK(hsa_signal_create(0, 0, nullptr, &signal));
  avoid_the_last_processor();
  std::vector<double> groups;
  for (int n = 0; n < GROUPS; n++) {
    uint64_t begin = now(CLOCK_THREAD_CPUTIME_ID);
    for (hsa_signal_t signal : done) {
      hsa_signal_store_relaxed(signal, 1);
      CHECK(hsa_amd_memory_async_copy(to, gpu, from, cpu, BYTES, 0, nullptr, signal));
    }
    if (n >= WARM_UP_GROUPS)
      groups.push_back(double(now(CLOCK_THREAD_CPUTIME_ID) - begin) / GROUP);
    for (hsa_signal_t signal : done)
      await([&] { return hsa_signal_load_scacquire(signal) < 1; });
  }
  // Only the processor time and the number of copies (measure.h).
  printf("%.1f 0 0 0 0 0 %d\n", quantile(groups, 0.5), GROUP * GROUPS);
  // The GPU may not yet have set the event of the last signal, see measure.h.
  fflush(stdout);
  timespec time = {0, 50000000};
  nanosleep(&time, nullptr);
}
