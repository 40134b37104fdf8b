// Dispatches kernels through HSA, without HIP: launch-aql CODE_OBJECT IDLE_QUEUES BATCH THREADS none|shared|each
//
// The last argument says which completion signals the batches have: none, one for all, or one each, which the program
// resets and uses again.
#include "measure.h"
#include <fcntl.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

enum { RING = 4096 }; // packets: enough for a block (measure.h) and the packets that a tool adds

static constexpr uint16_t header(hsa_packet_type_t type) {
  return type << HSA_PACKET_HEADER_TYPE | HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
         HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE;
}

struct Queue {
  hsa_queue_t *queue;
  hsa_signal_t done;
  hsa_kernel_dispatch_packet_t kernel;
  hsa_barrier_and_packet_t barrier = {};
  int batch;
  std::vector<hsa_signal_t> own;
  size_t next = 0;

  Queue(hsa_agent_t gpu, const hsa_kernel_dispatch_packet_t &packet, int batch, bool has_own_signals)
      : kernel(packet), batch(batch), own(has_own_signals ? RING : 0) {
    for (auto &signal : own)
      CHECK(hsa_signal_create(0, 0, nullptr, &signal));
    CHECK(hsa_queue_create(gpu, RING, HSA_QUEUE_TYPE_MULTI, nullptr, nullptr, UINT32_MAX, UINT32_MAX, &queue));
    CHECK(hsa_signal_create(1, 0, nullptr, &done));
  }
  // A batch starts at a multiple of its size, so it never wraps around the ring.
  template <class Packet> void write(uint16_t header, const Packet &packet, hsa_signal_t last) {
    uint64_t index = hsa_queue_add_write_index_relaxed(queue, batch);
    for (int n = 0; n < batch; n++) {
      Packet *slot = (Packet *)queue->base_address + ((index + n) & (RING - 1));
      memcpy((char *)slot + 4, (char *)&packet + 4, sizeof packet - 4);
      if (n == batch - 1)
        slot->completion_signal = last;
      uint32_t first;
      memcpy(&first, &packet, 4);
      __atomic_store_n((uint32_t *)slot, first | header, __ATOMIC_RELEASE);
    }
    hsa_signal_store_screlease(queue->doorbell_signal, index + batch - 1);
  }
  void launch() {
    hsa_signal_t signal = kernel.completion_signal;
    if (!own.empty()) {
      signal = own[next++ % RING];
      await([&] { return hsa_signal_load_relaxed(signal) < 1; });
      hsa_signal_silent_store_relaxed(signal, 1);
    }
    write(header(HSA_PACKET_TYPE_KERNEL_DISPATCH), kernel, signal);
  }
  void finish() {
    hsa_signal_store_relaxed(done, 1);
    write(header(HSA_PACKET_TYPE_BARRIER_AND) | 1 << HSA_PACKET_HEADER_BARRIER, barrier, done);
    await([&] { return hsa_signal_load_scacquire(done) < 1; });
  }
};

static hsa_status_t find_gpu(hsa_agent_t agent, void *found) {
  hsa_device_type_t type;
  CHECK(hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type));
  if (type == HSA_DEVICE_TYPE_GPU)
    *(hsa_agent_t *)found = agent;
  return HSA_STATUS_SUCCESS;
}

int main(int argc, char **argv) {
  if (argc != 6)
    fail("launch-aql CODE_OBJECT IDLE_QUEUES BATCH THREADS none|shared|each", argc);
  int idle = atoi(argv[2]), batch = atoi(argv[3]), threads = atoi(argv[4]);
  hsa_agent_t gpu;
  hsa_code_object_reader_t reader;
  hsa_executable_t executable;
  hsa_executable_symbol_t symbol;
  hsa_kernel_dispatch_packet_t packet = {};
  CHECK(hsa_init());
  CHECK(hsa_iterate_agents(find_gpu, &gpu));
  CHECK(hsa_code_object_reader_create_from_file(open(argv[1], O_RDONLY), &reader));
  CHECK(hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, nullptr, &executable));
  CHECK(hsa_executable_load_agent_code_object(executable, gpu, reader, nullptr, nullptr));
  CHECK(hsa_executable_freeze(executable, nullptr));
  CHECK(hsa_executable_get_symbol_by_name(executable, "kernel_0.kd", &gpu, &symbol));
  CHECK(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &packet.kernel_object));
  packet.setup = 1 << HSA_KERNEL_DISPATCH_PACKET_SETUP_DIMENSIONS;
  packet.workgroup_size_x = packet.workgroup_size_y = packet.workgroup_size_z = 1;
  packet.grid_size_x = packet.grid_size_y = packet.grid_size_z = 1;
  bool has_own_signals = !strcmp(argv[5], "each");
  if (!strcmp(argv[5], "shared"))
    CHECK(hsa_signal_create(INT64_MAX, 0, nullptr, &packet.completion_signal));

  std::vector<std::unique_ptr<Queue>> idle_queues, queues;
  for (int n = 0; n < idle; n++) {
    idle_queues.emplace_back(new Queue(gpu, packet, batch, has_own_signals));
    idle_queues.back()->launch();
    idle_queues.back()->finish();
  }
  for (int n = 0; n < threads; n++)
    queues.emplace_back(new Queue(gpu, packet, batch, has_own_signals));
  measure(batch, queues);
}
