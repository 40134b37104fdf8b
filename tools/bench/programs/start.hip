// A program that uses HIP and runs one kernel. With an argument, it then does nothing for a second. Prints the milliseconds of
// processor time that the process used in that second.
#include "hip_min.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

__global__ void kernel(int *out) { *out = 1; }

static void check(int status, const char *what) {
  if (status != 0) {
    fprintf(stderr, "%s failed with %d\n", what, status);
    exit(1);
  }
}

static double used() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

int main(int argc, char **) {
  int *out;
  check(hipMalloc((void **)&out, 4096), "hipMalloc");
  void *arguments[] = {&out};
  check(hipLaunchKernel((const void *)kernel, {1, 1, 1}, {1, 1, 1}, arguments, 0, nullptr), "hipLaunchKernel");
  check(hipDeviceSynchronize(), "hipDeviceSynchronize");
  if (argc > 1) {
    double before = used();
    sleep(1);
    printf("%.1f\n", used() - before);
  }
}
