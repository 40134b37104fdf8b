// What a launch costs the thread that makes it, and what it calls on the way. Dispatches come in blocks, so that the
// queue is never full; between two blocks the thread waits for the GPU, and that is not measured.
#pragma once

#include <algorithm>
#include <atomic>
#include <dlfcn.h>
#include <linux/perf_event.h>
#include <memory>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
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
  PAUSE_NS = 500000, // after each block: no GPU ends more than some million kernels a second
};

[[noreturn]] static inline void fail(const char *what, long status) {
  fprintf(stderr, "%s failed: %ld\n", what, status);
  _exit(1);
}

static inline uint64_t now(clockid_t clock) {
  timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * 1000000000ull + time.tv_nsec;
}

// What the calling thread has called, if counts.so is preloaded.
struct Counts {
  uint64_t allocations, signals, handlers, locks;
};
using CountsHere = Counts *();

// The calling thread's system calls, counted by the kernel.
class SystemCalls {
  int file = -1;

public:
  SystemCalls() {
    static const char name[] = "/sys/kernel/tracing/events/raw_syscalls/sys_enter/id";
    FILE *id = fopen(name, "r");
    perf_event_attr event = {};
    event.type = PERF_TYPE_TRACEPOINT;
    event.size = sizeof event;
    if (!id || fscanf(id, "%llu", &event.config) != 1)
      fail(name, -1);
    fclose(id);
    file = syscall(SYS_perf_event_open, &event, 0, -1, -1, 0);
    if (file < 0)
      fail("perf_event_open of raw_syscalls:sys_enter", file);
  }
  uint64_t read() const {
    uint64_t value;
    if (::read(file, &value, sizeof value) != sizeof value)
      fail("reading a perf event", file);
    return value;
  }
  SystemCalls(const SystemCalls &) = delete;
};

struct Result {
  std::vector<double> blocks;  // nanoseconds of CPU time a dispatch
  std::vector<double> singles; // nanoseconds of a launch
  uint64_t dispatches = 0, calls = 0;
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

static double tick_ns() {
  uint64_t time = now(CLOCK_MONOTONIC), first = ticks();
  while (now(CLOCK_MONOTONIC) - time < 20000000)
    ;
  return double(now(CLOCK_MONOTONIC) - time) / (ticks() - first);
}

// `queue.launch()` makes `batch` dispatches, `queue.finish()` waits until all are done.
template <class Queue> static void measure_thread(Queue &queue, int batch, double tick, Result &result) {
  auto counts_here = (CountsHere *)dlsym(RTLD_DEFAULT, "counts_here");
  int launches = BLOCK / batch;
  auto pause = [&] {
    queue.finish();
    timespec time = {0, PAUSE_NS};
    nanosleep(&time, nullptr);
  };
  for (int block = 0; block < WARM_UP; block++) {
    for (int n = 0; n < launches; n++)
      queue.launch();
    pause();
  }
  if (counts_here) {
    SystemCalls calls;
    uint64_t first = calls.read(), idle = calls.read() - first; // the read itself
    for (int block = 0; block < BLOCKS; block++) {
      Counts before = *counts_here();
      uint64_t calls_before = calls.read();
      for (int n = 0; n < launches; n++)
        queue.launch();
      result.calls += calls.read() - calls_before - idle;
      Counts after = *counts_here();
      result.counts.allocations += after.allocations - before.allocations;
      result.counts.signals += after.signals - before.signals;
      result.counts.handlers += after.handlers - before.handlers;
      result.counts.locks += after.locks - before.locks;
      result.dispatches += BLOCK;
      pause();
    }
    return;
  }
  std::vector<double> own(1000);
  for (double &cost : own) {
    uint64_t first = ticks();
    cost = ticks() - first;
  }
  double cost = quantile(own, 0.5);
  result.blocks.reserve(BLOCKS);
  result.singles.reserve(BLOCKS * launches);
  std::vector<uint64_t> times(launches);
  for (int block = 0; block < BLOCKS; block++) {
    uint64_t begin = now(CLOCK_THREAD_CPUTIME_ID);
    for (int n = 0; n < launches; n++)
      queue.launch();
    result.blocks.push_back(double(now(CLOCK_THREAD_CPUTIME_ID) - begin) / BLOCK);
    pause();
    for (uint64_t &time : times) {
      uint64_t first = ticks();
      queue.launch();
      time = ticks() - first;
    }
    for (uint64_t time : times)
      result.singles.push_back((time - cost) * tick);
    pause();
  }
}

// Prints: the median of the blocks, median and 99th percentile of single launches, all in nanoseconds, and how many
// dispatches there were; with counts.so, the dispatches that were counted and the threads' system calls, allocations,
// signals, handlers and locks.
template <class Queue> static void measure(int batch, std::vector<std::unique_ptr<Queue>> &queues) {
  double tick = tick_ns();
  std::vector<Result> results(queues.size());
  std::vector<std::thread> threads;
  std::atomic<unsigned> ready{0};
  for (size_t n = 0; n < queues.size(); n++)
    threads.emplace_back([&, n] {
      for (ready++; ready < queues.size();)
        std::this_thread::yield();
      measure_thread(*queues[n], batch, tick, results[n]);
    });
  for (auto &thread : threads)
    thread.join();
  Result all;
  for (auto &result : results) {
    all.blocks.insert(all.blocks.end(), result.blocks.begin(), result.blocks.end());
    all.singles.insert(all.singles.end(), result.singles.begin(), result.singles.end());
    all.dispatches += result.dispatches;
    all.calls += result.calls;
    all.counts.allocations += result.counts.allocations;
    all.counts.signals += result.counts.signals;
    all.counts.handlers += result.counts.handlers;
    all.counts.locks += result.counts.locks;
  }
  if (all.dispatches)
    printf("%lu %lu %lu %lu %lu %lu\n", all.dispatches, all.calls, all.counts.allocations, all.counts.signals,
           all.counts.handlers, all.counts.locks);
  else
    printf("%.1f %.1f %.1f %zu\n", quantile(all.blocks, 0.5), quantile(all.singles, 0.5), quantile(all.singles, 0.99),
           queues.size() * (WARM_UP + 2 * BLOCKS) * BLOCK);
  fflush(stdout);
}
