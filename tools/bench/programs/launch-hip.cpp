// Launches kernels through HIP: launch-hip IDLE_STREAMS THREADS [null|null-sync|null-copies]
//
// Each thread launches on its own non-blocking stream, next to idle ones. With a third argument, one thread launches on the
// NULL stream, next to idle blocking streams, which it synchronizes with; -sync: it waits for each kernel, which is not
// measured, because ROCr polls; -copies: it copies 64 bytes before each kernel. Each stream has its own queue only if GPU_MAX_HW_QUEUES is at least the number of
// streams.
#include "hip_min.h"
#include "measure.h"

enum { COPY = 64 };

extern "C" const char kernel_0; // HIP's handle of the kernel in kernel.hip

struct Stream {
  void *stream = nullptr, *from = nullptr, *to = nullptr;
  bool sync = false;
  uint64_t waited = 0; // nanoseconds of CPU time

  // The NULL stream.
  Stream(bool sync, bool copies) : sync(sync) {
    if (copies) {
      CHECK(hipHostMalloc(&from, COPY, 0));
      CHECK(hipMalloc(&to, COPY));
    }
  }
  Stream(unsigned flags) { CHECK(hipStreamCreateWithFlags(&stream, flags)); }
  void launch() {
    int *out = nullptr;
    void *arguments[] = {&out};
    if (from)
      CHECK(hipMemcpyAsync(to, from, COPY, hipMemcpyHostToDevice, stream));
    CHECK(hipLaunchKernel(&kernel_0, dim3{1, 1, 1}, dim3{64, 1, 1}, arguments, 0, stream));
    if (sync) {
      uint64_t begin = now(CLOCK_THREAD_CPUTIME_ID);
      CHECK(hipStreamSynchronize(stream));
      waited += now(CLOCK_THREAD_CPUTIME_ID) - begin;
    }
  }
  void finish() {
    await([&] { return hipStreamQuery(stream) == 0; });
    CHECK(hipStreamSynchronize(stream));
  }
};

int main(int argc, char **argv) {
  if (argc < 3)
    fail("launch-hip IDLE_STREAMS THREADS [null|null-sync|null-copies]", argc);
  int idle = atoi(argv[1]), threads = atoi(argv[2]);
  std::string null = argc > 3 ? argv[3] : "";
  std::vector<std::unique_ptr<Stream>> idle_streams, streams;
  for (int n = 0; n < idle; n++) {
    idle_streams.emplace_back(new Stream(null.empty() ? unsigned(hipStreamNonBlocking) : unsigned(hipStreamDefault)));
    idle_streams.back()->launch();
    idle_streams.back()->finish();
  }
  for (int n = 0; n < threads; n++)
    streams.emplace_back(null.empty() ? new Stream(unsigned(hipStreamNonBlocking))
                                      : new Stream(null == "null-sync", null == "null-copies"));
  if (null == "null-sync") { // about 10,000 launches
    blocks = 3;
    warm_up_blocks = 1;
  }
  measure(1, streams);
}
