// Launches kernels through HIP, each thread on its own stream: launch-hip IDLE_STREAMS THREADS
// Each stream has its own queue only if GPU_MAX_HW_QUEUES is at least the number of streams.
#include "hip_min.h"
#include "measure.h"

#define CHECK(call)                                                                                                    \
  do {                                                                                                                 \
    int status_ = (call);                                                                                              \
    if (status_ != 0)                                                                                                  \
      fail(#call, status_);                                                                                            \
  } while (0)

extern "C" const char kernel_0; // HIP's handle of the kernel in kernel.hip

struct Stream {
  void *stream;

  Stream() { CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking)); }
  void launch() {
    int *out = nullptr;
    void *arguments[] = {&out};
    CHECK(hipLaunchKernel(&kernel_0, dim3{1, 1, 1}, dim3{64, 1, 1}, arguments, 0, stream));
  }
  void finish() {
    await([&] { return hipStreamQuery(stream) == 0; });
    CHECK(hipStreamSynchronize(stream));
  }
};

int main(int argc, char **argv) {
  if (argc != 3)
    fail("launch-hip IDLE_STREAMS THREADS", argc);
  int idle = atoi(argv[1]), threads = atoi(argv[2]);
  std::vector<std::unique_ptr<Stream>> idle_streams, streams;
  for (int n = 0; n < idle; n++) {
    idle_streams.emplace_back(new Stream);
    idle_streams.back()->launch();
    idle_streams.back()->finish();
  }
  for (int n = 0; n < threads; n++)
    streams.emplace_back(new Stream);
  measure(1, streams);
}
