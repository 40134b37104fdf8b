// Sums a vector over all GPUs of one process with RCCL. It prints "communicators", then the number of wrong elements.
//
// The declarations are the same as in rccl.h, so that only librccl.so.1 is necessary.
#include <cstdio>
#include <hip/hip_runtime.h>
#include <vector>

struct ncclComm;
using ncclComm_t = ncclComm *;
enum { ncclSum = 0, ncclFloat = 7 };
extern "C" {
int ncclCommInitAll(ncclComm_t *, int, const int *);
int ncclCommDestroy(ncclComm_t);
int ncclGroupStart();
int ncclGroupEnd();
int ncclAllReduce(const void *, void *, size_t, int, int, ncclComm_t, hipStream_t);
const char *ncclGetErrorString(int);
}

#define CHECK(CALL, STRING)                                                                                            \
  do {                                                                                                                 \
    if (auto result = CALL) {                                                                                          \
      printf("%s: %s\n", #CALL, STRING(result));                                                                       \
      return 1;                                                                                                        \
    }                                                                                                                  \
  } while (0)
#define HIP(CALL) CHECK(CALL, hipGetErrorString)
#define NCCL(CALL) CHECK(CALL, ncclGetErrorString)

int main() {
  constexpr int count = 1000;
  int gpus = 0;
  HIP(hipGetDeviceCount(&gpus));
  std::vector<ncclComm_t> comms(gpus);
  NCCL(ncclCommInitAll(comms.data(), gpus, nullptr));
  puts("communicators");

  std::vector<float *> data(gpus);
  std::vector<hipStream_t> streams(gpus);
  std::vector<float> host(count);
  for (int gpu = 0; gpu < gpus; ++gpu) {
    HIP(hipSetDevice(gpu));
    HIP(hipMalloc(&data[gpu], count * sizeof(float)));
    HIP(hipStreamCreate(&streams[gpu]));
    for (int i = 0; i < count; ++i)
      host[i] = float(i * (gpu + 1));
    HIP(hipMemcpy(data[gpu], host.data(), count * sizeof(float), hipMemcpyHostToDevice));
  }

  NCCL(ncclGroupStart());
  for (int gpu = 0; gpu < gpus; ++gpu)
    NCCL(ncclAllReduce(data[gpu], data[gpu], count, ncclFloat, ncclSum, comms[gpu], streams[gpu]));
  NCCL(ncclGroupEnd());

  int wrong = 0;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    HIP(hipSetDevice(gpu));
    HIP(hipStreamSynchronize(streams[gpu]));
    HIP(hipMemcpy(host.data(), data[gpu], count * sizeof(float), hipMemcpyDeviceToHost));
    for (int i = 0; i < count; ++i)
      wrong += host[i] != float(i * (gpus * (gpus + 1) / 2));
  }
  printf("wrong: %d of %d\n", wrong, gpus * count);
  for (auto comm : comms)
    NCCL(ncclCommDestroy(comm));
  return wrong != 0;
}
