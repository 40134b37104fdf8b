// For programs with a trace: functions of devprof, and a kernel that runs for a while.
#pragma once
#include "check.h"
#include <dlfcn.h>
#include <unistd.h>

static inline void devprof(const char *name) {
    int (*function)() = (int (*)())dlsym(RTLD_DEFAULT, name);
    EXPECT(function && function() == 0);
}

static __device__ void wait_for(long long ns) {
    long long start, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(start));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - start < ns);
}

static __global__ void spin(long long ns) { wait_for(ns); }
