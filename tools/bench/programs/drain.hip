// Runs one kernel of each code object, then measures the collect call and a second one. The code objects are linked
// into the program (LAUNCHES is a header with a list of functions), or loaded from the files that the arguments name.
// Prints the nanoseconds of the first and of the second call and of loading all files, and the calls' results.
#include "hip_min.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#ifdef LAUNCHES
#include LAUNCHES
#endif

static void check(int status, const char *what) {
  if (status != 0) {
    fprintf(stderr, "%s failed with %d\n", what, status);
    exit(1);
  }
}

static long now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000L + t.tv_nsec;
}

int main(int argc, char **argv) {
  long loading = 0;
  int *out;
  check(hipMalloc((void **)&out, 4096), "hipMalloc");
#ifdef LAUNCHES
  for (auto launch : launches)
    launch(out);
#else
  for (int n = 1; n < argc; n++) {
    void *module, *function;
    char name[32];
    snprintf(name, sizeof name, "kernel_%d", n - 1);
    long start = now();
    check(hipModuleLoad(&module, argv[n]), argv[n]);
    loading += now() - start;
    check(hipModuleGetFunction(&function, module, name), name);
    void *arguments[] = {&out};
    check(hipModuleLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr), "hipModuleLaunchKernel");
  }
#endif
  check(hipDeviceSynchronize(), "hipDeviceSynchronize");
  long start = now();
  int first = __llvm_profile_hip_collect_device_data();
  long middle = now();
  int second = __llvm_profile_hip_collect_device_data();
  printf("%ld %ld %ld %d %d\n", middle - start, now() - middle, loading, first, second);
}
