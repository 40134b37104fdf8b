// The part of HIP's C interface that these programs use. The benchmarks compile hundreds of files, and with HIP's own
// headers each would take clang ten times as long.
#pragma once

#define __global__ __attribute__((global))

enum { hipStreamDefault = 0, hipStreamNonBlocking = 1, hipMemcpyHostToDevice = 1 };

struct dim3 {
  unsigned x, y, z;
};

extern "C" {
int hipMalloc(void **, unsigned long);
int hipHostMalloc(void **, unsigned long, unsigned);
int hipMemcpyAsync(void *, const void *, unsigned long, int, void *);
int hipGetDevice(int *);
int hipDeviceSynchronize();
int hipStreamCreateWithFlags(void **, unsigned);
int hipStreamQuery(void *);
int hipStreamSynchronize(void *);
int hipLaunchKernel(const void *, dim3, dim3, void **, unsigned long, void *);
int hipModuleLoad(void **, const char *);
int hipModuleGetFunction(void **, void *, const char *);
int hipModuleLaunchKernel(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                          void **);
int __llvm_profile_hip_collect_device_data();
}
