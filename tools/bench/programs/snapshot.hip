// snapshot LAUNCHES FILE...: loads the code objects (of wide.hip), and launches kernels of the first one without pause.
// Prints nanoseconds per launch, and the CPU time of devprof's thread for snapshots, and of the GPU model, in percent of
// the elapsed time.
#include "hip_min.h"
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void check(int status, const char *what) {
  if (status != 0) {
    fprintf(stderr, "%s failed with %d\n", what, status);
    exit(1);
  }
}

static double now(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

// The CPU time of the threads whose names begin with `prefix`.
static double thread_time(const char *prefix) {
  double time = 0;
  DIR *tasks = opendir("/proc/self/task");
  while (dirent *task = tasks ? readdir(tasks) : nullptr) {
    char path[64], name[16] = "";
    snprintf(path, sizeof path, "/proc/self/task/%.16s/comm", task->d_name);
    FILE *file = fopen(path, "r");
    if (!file)
      continue;
    // The thread's CPU clock, as pthread_getcpuclockid computes it from the thread id.
    if (fgets(name, sizeof name, file) && !strncmp(name, prefix, strlen(prefix)))
      time += now(clockid_t(~unsigned(atoi(task->d_name)) << 3 | 6));
    fclose(file);
  }
  if (tasks)
    closedir(tasks);
  return time;
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
  double start = now(CLOCK_MONOTONIC), devprof = thread_time("devprof-snap"), model = thread_time("gpu-model");
  launch(count);
  double elapsed = now(CLOCK_MONOTONIC) - start;
  devprof = thread_time("devprof-snap") - devprof;
  model = thread_time("gpu-model") - model;
  printf("%f %f %f\n", elapsed / count, 100 * devprof / elapsed, 100 * model / elapsed);
}
