// snapshot LAUNCHES FILE...: loads the code objects (of wide.hip), and launches kernels of the first one without pause.
// Prints nanoseconds per launch.
#include "hip_min.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void check(int status, const char *what) {
  if (status != 0) {
    fprintf(stderr, "%s failed with %d\n", what, status);
    exit(1);
  }
}

static double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(int argc, char **argv) {
  int *out;
  check(hipMalloc((void **)&out, 4096), "hipMalloc");
  void *function = nullptr, *arguments[] = {&out};
  for (int n = 2; n < argc; n++) {
    void *module, *found;
    char name[32];
    snprintf(name, sizeof name, "kernel_0_%d", n - 2);
    check(hipModuleLoad(&module, argv[n]), argv[n]);
    check(hipModuleGetFunction(&found, module, name), name);
    function = function ? function : found;
  }
  auto launch = [&](long count) {
    for (long n = 1; n <= count; n++) {
      check(hipModuleLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, arguments, nullptr), "hipModuleLaunchKernel");
      if (n % 1000 == 0)
        check(hipDeviceSynchronize(), "hipDeviceSynchronize");
    }
    check(hipDeviceSynchronize(), "hipDeviceSynchronize");
  };
  long count = atol(argv[1]);
  launch(count / 10);
  double start = now();
  launch(count);
  printf("%f\n", (now() - start) / count);
}
