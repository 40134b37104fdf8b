// Measures what a launch costs the launching thread, and counts its calls. Dispatches are made in blocks, so that the
// queue is never full. Between two blocks the thread waits for the GPU, which is not measured. The launching threads do
// not use the last processor, which is reserved for the GPU model (silent.c). All other threads may run on any processor.
#pragma once

#include <algorithm>
#include <atomic>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <memory>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <thread>
#include <time.h>
#include <unistd.h>
#include <vector>
#include <x86intrin.h>

enum {
  BLOCK = 1024,      // dispatches
  BLOCKS = 60,       // of each kind
  WARM_UP = 20,      // blocks
  PAUSE_NS = 500000, // after each block, because a real GPU completes only a few million kernels per second
};

[[noreturn]] static inline void fail(const char *what, long status) {
  fprintf(stderr, "%s failed: %ld\n", what, status);
  _exit(1);
}

// For functions of HIP and HSA, which return 0 if they succeed.
#define CHECK(call)                                                                                                    \
  do {                                                                                                                 \
    int status_ = (call);                                                                                              \
    if (status_ != 0)                                                                                                  \
      fail(#call, status_);                                                                                            \
  } while (0)

static inline uint64_t now(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * 1000000000ull + time.tv_nsec;
}

// Polls, because ROCr's model mode sometimes does not wake a thread that waits for an event.
template <class Done> static void await(Done done) {
  while (!done()) {
    timespec time = {0, 100000};
    nanosleep(&time, nullptr);
  }
}

// The calling thread's counts (counts.cpp), if counts.so is preloaded.
struct Counts {
  uint64_t allocations, signals, handlers, locks;
};
using ThreadCounts = Counts *();

// Opens a file of tracefs. If tracefs is not mounted, mounts it for the calling thread only.
static inline FILE *open_tracefs(const char *name) {
  if (FILE *file = fopen(name, "r"))
    return file;
  if (unshare(CLONE_NEWNS) || mount(nullptr, "/sys", nullptr, MS_REC | MS_PRIVATE, nullptr) ||
      mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, nullptr))
    return nullptr;
  return fopen(name, "r");
}

// The calling thread's system calls, counted by the kernel. If the kernel does not count them, the reason is printed to
// stderr once, and the count is 0.
class SystemCalls {
  int file = -1;

  static void not_counted(const char *what) {
    static std::atomic<bool> printed{false};
    if (!printed.exchange(true))
      fprintf(stderr, "system calls are not counted: %s: %s\n", what, strerror(errno));
  }

public:
  SystemCalls() {
    static const char name[] = "/sys/kernel/tracing/events/raw_syscalls/sys_enter/id";
    FILE *id = open_tracefs(name);
    if (!id) {
      not_counted(name);
      return;
    }
    perf_event_attr event = {};
    event.type = PERF_TYPE_TRACEPOINT;
    event.size = sizeof event;
    if (fscanf(id, "%llu", &event.config) != 1)
      fail(name, -1);
    fclose(id);
    file = syscall(SYS_perf_event_open, &event, 0, -1, -1, 0);
    if (file < 0)
      not_counted("perf_event_open of raw_syscalls:sys_enter");
  }
  bool is_open() const { return file >= 0; }
  uint64_t read() const {
    uint64_t value;
    if (!is_open())
      return 0;
    if (::read(file, &value, sizeof value) != sizeof value)
      fail("reading a perf event", file);
    return value;
  }
  SystemCalls(const SystemCalls &) = delete;
};

static inline uint64_t preemptions() {
  rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

// A number that the naive tool exports about its handlers; `missing` for other tools.
static inline uint64_t handler_statistic(const char *what, uint64_t missing) {
  const char *tools = getenv("HSA_TOOLS_LIB"), *space = tools ? strrchr(tools, ' ') : nullptr;
  const char *last = space ? space + 1 : tools;
  void *tool = last && *last ? dlopen(last, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
  auto count = tool ? (uint64_t (*)())dlsym(tool, what) : nullptr;
  return count ? count() : missing;
}

// Nanoseconds of CPU time that a tool has used on other threads: devprof's threads, and the naive tool's handlers on
// ROCr's thread.
static inline uint64_t time_on_other_threads() {
  uint64_t time = 0;
  DIR *tasks = opendir("/proc/self/task");
  while (dirent *task = tasks ? readdir(tasks) : nullptr) {
    char path[64], name[16] = "";
    snprintf(path, sizeof path, "/proc/self/task/%.16s/comm", task->d_name);
    FILE *file = fopen(path, "r");
    if (!file)
      continue;
    // The thread's CPU clock, as pthread_getcpuclockid computes it from the thread id.
    if (fgets(name, sizeof name, file) && !strncmp(name, "devprof-", 8))
      time += now(clockid_t(~unsigned(atoi(task->d_name)) << 3 | 6));
    fclose(file);
  }
  if (tasks)
    closedir(tasks);
  return time + handler_statistic("handler_time", 0);
}

static inline void avoid_the_last_processor() {
  cpu_set_t others;
  CPU_ZERO(&others);
  for (long n = 0; n < std::max(sysconf(_SC_NPROCESSORS_ONLN) - 1, 1l); n++)
    CPU_SET(n, &others);
  if (sched_setaffinity(0, sizeof others, &others))
    fail("sched_setaffinity", -1);
}

static std::atomic<uint64_t> launched{0}; // dispatches, by all threads
static int blocks = BLOCKS, warm_up_blocks = WARM_UP; // main may reduce them

struct Result {
  std::vector<double> blocks; // nanoseconds of CPU time per dispatch
  std::vector<double> cpu;    // nanoseconds of CPU time of single launches
  std::vector<double> wall;   // nanoseconds of single launches
  uint64_t dispatches = 0, calls = 0, preemptions = 0;
  bool calls_counted = true;
  Counts counts = {};
};

static double quantile(std::vector<double> &values, double part) {
  auto at = values.begin() + (values.size() - 1) * part;
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

static inline uint64_t ticks() {
  _mm_lfence();
  return __rdtsc();
}

static inline double tick_ns() {
  uint64_t time = now(CLOCK_MONOTONIC), first = ticks();
  while (now(CLOCK_MONOTONIC) - time < 20000000)
    ;
  return double(now(CLOCK_MONOTONIC) - time) / (ticks() - first);
}

// The CPU time that a queue's launches have spent waiting.
template <class Queue> static auto waited(const Queue &queue, int) -> decltype(queue.waited) { return queue.waited; }
template <class Queue> static uint64_t waited(const Queue &, long) { return 0; }

// `queue.launch()` makes `batch` dispatches, `queue.finish()` waits until all are done.
template <class Queue> static void measure_thread(Queue &queue, int batch, double tick, Result &result) {
  auto thread_counts = (ThreadCounts *)dlsym(RTLD_DEFAULT, "thread_counts");
  int launches = BLOCK / batch;
  auto pause = [&] {
    queue.finish();
    // ROCr's model mode has 8,192 events, and each signal of the naive tool occupies one until its handler has run.
    uint64_t all = launched += BLOCK;
    await([&] { return handler_statistic("handler_calls", UINT64_MAX) >= all - BLOCK / 2; });
    timespec time = {0, PAUSE_NS};
    nanosleep(&time, nullptr);
  };
  for (int block = 0; block < warm_up_blocks; block++) {
    for (int n = 0; n < launches; n++)
      queue.launch();
    pause();
  }
  if (thread_counts) {
    SystemCalls calls;
    result.calls_counted = calls.is_open();
    uint64_t first = calls.read(), idle = calls.read() - first; // the read itself
    for (int block = 0; block < blocks; block++) {
      Counts before = *thread_counts();
      uint64_t preempted_before = preemptions(), calls_before = calls.read();
      for (int n = 0; n < launches; n++)
        queue.launch();
      result.calls += calls.read() - calls_before - idle;
      result.preemptions += preemptions() - preempted_before;
      Counts after = *thread_counts();
      result.counts.allocations += after.allocations - before.allocations;
      result.counts.signals += after.signals - before.signals;
      result.counts.handlers += after.handlers - before.handlers;
      result.counts.locks += after.locks - before.locks;
      result.dispatches += BLOCK;
      pause();
    }
    return;
  }
  auto cpu_time = [&] { return now(CLOCK_THREAD_CPUTIME_ID) - waited(queue, 0); };
  // Measures single launches with a clock, minus the cost of the clock itself. The first few are not measured, because
  // they warm up the caches.
  auto measure_singles = [&](std::vector<double> &all, double unit, auto clock) {
    auto time = [&](auto work) {
      uint64_t first = clock();
      work();
      return double(clock() - first);
    };
    std::vector<double> costs(1000);
    for (double &cost : costs)
      cost = time([] {});
    double cost = quantile(costs, 0.5);
    int warm_up = launches / 16;
    for (int n = 0; n < warm_up; n++)
      queue.launch();
    for (int n = warm_up; n < launches; n++)
      all.push_back((time([&] { queue.launch(); }) - cost) * unit);
  };
  for (auto *all : {&result.blocks, &result.cpu, &result.wall})
    all->reserve(blocks * launches);
  for (int block = 0; block < blocks; block++) {
    uint64_t begin = cpu_time();
    for (int n = 0; n < launches; n++)
      queue.launch();
    result.blocks.push_back(double(cpu_time() - begin) / BLOCK);
    pause();
    measure_singles(result.cpu, 1, cpu_time);
    pause();
    measure_singles(result.wall, tick, ticks);
    pause();
  }
}

// Prints nanoseconds: the median of the blocks; median and 99th percentile of single launches, first CPU time and then
// elapsed time; CPU time on other threads per dispatch; then the number of dispatches. With counts.so, prints instead
// the number of dispatches, and the launching threads' system calls ("-" if the kernel does not count them),
// allocations, signals, handlers, locks and preemptions.
template <class Queue> static void measure(int batch, std::vector<std::unique_ptr<Queue>> &queues) {
  double tick = tick_ns();
  std::vector<Result> results(queues.size());
  std::vector<std::thread> threads;
  std::atomic<unsigned> ready{0};
  for (size_t n = 0; n < queues.size(); n++)
    threads.emplace_back([&, n] {
      avoid_the_last_processor();
      for (ready++; ready < queues.size();)
        std::this_thread::yield();
      measure_thread(*queues[n], batch, tick, results[n]);
    });
  for (auto &thread : threads)
    thread.join();
  Result all;
  for (auto &result : results) {
    for (auto part : {&Result::blocks, &Result::cpu, &Result::wall})
      (all.*part).insert((all.*part).end(), (result.*part).begin(), (result.*part).end());
    all.dispatches += result.dispatches;
    all.calls += result.calls;
    all.calls_counted &= result.calls_counted;
    all.preemptions += result.preemptions;
    all.counts.allocations += result.counts.allocations;
    all.counts.signals += result.counts.signals;
    all.counts.handlers += result.counts.handlers;
    all.counts.locks += result.counts.locks;
  }
  if (all.dispatches) {
    std::string calls = all.calls_counted ? std::to_string(all.calls) : "-";
    printf("%lu %s %lu %lu %lu %lu %lu\n", all.dispatches, calls.c_str(), all.counts.allocations, all.counts.signals,
           all.counts.handlers, all.counts.locks, all.preemptions);
  } else {
    size_t dispatches = queues.size() * (warm_up_blocks + 3 * blocks) * BLOCK;
    double other_threads = double(time_on_other_threads()) / dispatches;
    printf("%.1f %.1f %.1f %.1f %.1f %.1f %zu\n", quantile(all.blocks, 0.5), quantile(all.cpu, 0.5),
           quantile(all.cpu, 0.99), quantile(all.wall, 0.5), quantile(all.wall, 0.99), other_threads, dispatches);
  }
  fflush(stdout);
  // The GPU may not yet have set the event of the last signal. ROCr's model mode aborts if that event was destroyed.
  timespec time = {0, 50000000};
  nanosleep(&time, nullptr);
}
