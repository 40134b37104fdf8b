// Programs that look up HIP's functions: with dlsym in HIP's library, which they have loaded in different ways, in the
// program or among all libraries, or with hipGetProcAddress. Calls through these pointers are recorded, each once. A
// pointer to a recorded function equals its address. Functions that this run does not record, and lookups that fail, are as without
// devprof, and dlerror, too.
//
// REQUIRES: model
// RUN: %hip_cxx -O2 %s -o linked && %clang -x c++ -O2 -DLOADED -I%inputs %s -o loaded -lstdc++
// RUN: ./linked > linked.alone && FileCheck %s --check-prefix=ALONE < linked.alone
// RUN: %preload ./linked > off && diff linked.alone off
// RUN: %preload DEVPROF_TRACE=x.trace DEVPROF_DISABLE=1 ./linked > off && diff linked.alone off
// RUN: %preload DEVPROF_TRACE=linked.trace ./linked same > traced && diff linked.alone traced
// RUN: %trace --calls linked.trace | FileCheck %s --check-prefix=CALLS --match-full-lines
// RUN: %preload DEVPROF_TRACE=linked.trace DEVPROF_TRACE_API=1 ./linked same > traced && diff linked.alone traced
// RUN: %trace --calls linked.trace | grep -v '^hip[IFGM]' | FileCheck %s --check-prefix=API --match-full-lines
//
// ALONE:      NULL: {{.*}}undefined symbol: hipNothing
// ALONE:      the end
// CALLS:      hipMemset 0
// CALLS-NEXT: hipMemset 0
// CALLS-NEXT: hipMemset 0
// CALLS-NEXT: hipMemset 0
// CALLS-NEXT: hipMemset 0
// CALLS-NEXT: hipMemset_spt 0
// CALLS-NOT:  {{.}}
// API:      hipDeviceSynchronize 0
// API-NEXT: hipDeviceSynchronize 0
// API-NEXT: hipDeviceSynchronize 0
// API-NEXT: hipDeviceSynchronize 0
// API-NEXT: hipDeviceSynchronize 0
// API-NEXT: hipDeviceSynchronize 0
// API-NOT:  {{.}}
//
// A program that is not linked with HIP and loads it for itself.
// RUN: ./loaded local > loaded.alone
// RUN: %preload DEVPROF_TRACE=loaded.trace ./loaded local > traced && diff loaded.alone traced
// RUN: %trace --calls loaded.trace | FileCheck %s --check-prefix=LOADED --match-full-lines
// RUN: %preload DEVPROF_TRACE=loaded.trace ./loaded deep > traced && diff loaded.alone traced
// RUN: %trace --calls loaded.trace | FileCheck %s --check-prefix=LOADED --match-full-lines
// RUN: %preload DEVPROF_TRACE=loaded.trace ./loaded global > traced && diff loaded.alone traced
// RUN: %trace --calls loaded.trace | FileCheck %s --check-prefix=LOADED --match-full-lines
// LOADED:      hipMemset 0
// LOADED-NEXT: hipMemset 0
// LOADED-NOT:  {{.}}
//
// Other libraries that define dlsym, before and after devprof's, see the same calls as without devprof. A library whose
// dlsym returns its own hipMemset is not bypassed.
// RUN: %clang -O1 -shared -fPIC -DOTHER -x c %s -o other.so
// RUN: env LD_PRELOAD=%t/other.so:%{preloaded} ./loaded local > other.alone && FileCheck %s --check-prefix=OTHER < other.alone
// RUN: env LD_PRELOAD=%devprof_so:%t/other.so:%{preloaded} DEVPROF_TRACE=other.trace ./loaded local > traced
// RUN: diff other.alone traced
// RUN: env LD_PRELOAD=%devprof_so:%t/other.so:%{preloaded} ./loaded local > traced && diff other.alone traced
// RUN: env LD_PRELOAD=%t/other.so:%devprof_so:%{preloaded} DEVPROF_TRACE=other.trace ./loaded local > traced
// RUN: diff other.alone traced
// OTHER: other hipMemset
// OTHER: other hipMemset
#ifdef OTHER
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static int (*memset_of_hip)(void *, int, size_t);

static int other_memset(void *to, int value, size_t size) {
    puts("other hipMemset");
    return memset_of_hip(to, value, size);
}

void *dlsym(void *handle, const char *name) {
    static void *(*next)(void *, const char *);
    if (!next)
        next = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    // The caller matters for RTLD_NEXT.
    if (handle == RTLD_NEXT || handle == RTLD_DEFAULT)
        __attribute__((musttail)) return next(handle, name);
    void *found = next(handle, name);
    if (found && strcmp(name, "hipMemset") == 0) {
        memset_of_hip = (int (*)(void *, int, size_t))found;
        return (void *)other_memset;
    }
    return found;
}
#else
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

using Memset = int(void *, int, size_t);
using Synchronize = int();
using GetProcAddress = int(const char *, void **, int, unsigned long, void *);

static void require(bool holds, const char *what) {
    if (!holds) {
        printf("wrong: %s (%s)\n", what, dlerror());
        exit(1);
    }
}

// Symbols of another library, found with other handles, and lookups that fail.
static void others(void *handle) {
    dlerror();
    require(dlsym(handle, "hipNothing") == NULL, "hipNothing");
    const char *error = dlerror();
    printf("NULL: %s\n", error ? error : "no error");
    require(dlerror() == NULL, "the error is returned once");
    require(dlsym(handle, "hipGetDeviceCount") != NULL && dlerror() == NULL, "no error");
    // A failure before a successful lookup is forgotten, as without devprof.
    require(dlsym(RTLD_DEFAULT, "hip") == NULL && dlsym(RTLD_DEFAULT, "h") == NULL, "names that begin like HIP's");
    require(dlsym(RTLD_DEFAULT, "puts") == (void *)puts, "RTLD_DEFAULT");
    // This program has its own getenv.
    void *next = dlsym(RTLD_NEXT, "getenv");
    require(next != NULL && dlsym(RTLD_NEXT, "main") == NULL, "RTLD_NEXT");
    Dl_info info;
    require(dladdr(next, &info) && next != (void *)getenv, "the next getenv");
    printf("the next getenv is in %s\n", info.dli_fname);
    void *self = dlopen(NULL, RTLD_NOW);
    require(self && dlsym(self, "getenv"), "the program's handle");
    dlclose(self);
    for (int n = 0; n < 100000; n++)
        if (dlsym(handle, "hipGetDeviceCount") == NULL || dlsym(RTLD_DEFAULT, "strlen") == NULL)
            require(false, "many lookups");
}

char *getenv(const char *name) noexcept {
    using Getenv = char *(const char *) noexcept;
    static Getenv *next = (Getenv *)dlsym(RTLD_NEXT, "getenv");
    // getenv of gpu-model/start.c needs to know that ROCr calls it.
    [[clang::musttail]] return next(name);
}

#ifdef LOADED
int main(int, char **arguments) {
    const char *how = arguments[1];
    int flags = strcmp(how, "local") == 0 ? RTLD_LOCAL : strcmp(how, "deep") == 0 ? RTLD_LOCAL | RTLD_DEEPBIND : RTLD_GLOBAL;
    void *hip = dlopen("libamdhip64.so.7", RTLD_NOW | flags);
    require(hip != NULL, "HIP");
    auto *allocate = (int (*)(void **, size_t))dlsym(hip, "hipMalloc");
    auto *set = (Memset *)dlsym(hip, "hipMemset");
    auto *get = (GetProcAddress *)dlsym(hip, "hipGetProcAddress");
    require(allocate && set && get, "symbols");
    void *memory = NULL, *found = NULL;
    require(allocate(&memory, 64) == 0, "hipMalloc");
    require(set(memory, 0, 64) == 0, "hipMemset");
    require(get("hipMemset", &found, 70000, 0, NULL) == 0, "hipGetProcAddress");
    require(((Memset *)found)(memory, 0, 64) == 0, "hipMemset from hipGetProcAddress");
    others(hip);
    puts("the end");
    return 0;
}
#else
#include "check.h"

int main(int count, char **) {
    void *hip = dlopen("libamdhip64.so.7", RTLD_NOW | RTLD_NOLOAD), *self = dlopen(NULL, RTLD_NOW);
    require(hip != NULL, "HIP");
    others(hip);
    int *out = device_ints(16);
    void *memsets[4] = {dlsym(hip, "hipMemset"), dlsym(RTLD_DEFAULT, "hipMemset"), dlsym(self, "hipMemset")};
    void *waits[4] = {dlsym(hip, "hipDeviceSynchronize"), dlsym(RTLD_DEFAULT, "hipDeviceSynchronize"),
                      dlsym(self, "hipDeviceSynchronize")};
    CHECK(hipGetProcAddress("hipMemset", memsets + 3, 70000, 0, NULL));
    CHECK(hipGetProcAddress("hipDeviceSynchronize", waits + 3, 70000, 0, NULL));
    void *per_thread = NULL, *none = out;
    CHECK(hipGetProcAddress("hipMemset_spt", &per_thread, 70000, 0, NULL));
    hipDriverProcAddressQueryResult status;
    require(hipGetProcAddress("hipNothing", &none, 70000, 0, &status) != hipSuccess, "hipNothing");
    printf("status %d\n", status);
    require(hipGetLastError() != hipSuccess, "the last error");
    CHECK(hipMemset(out, 0, 64));
    CHECK(hipDeviceSynchronize());
    for (int n = 0; n < 4; n++) {
        require(count == 1 || memsets[n] == (void *)hipMemset, "the address of hipMemset");
        require(((Memset *)memsets[n])(out, 0, 64) == 0, "hipMemset");
        require(((Synchronize *)waits[n])() == 0, "hipDeviceSynchronize");
    }
    require(((Memset *)per_thread)(out, 0, 64) == 0, "hipMemset_spt");
    CHECK(hipDeviceSynchronize());
    puts("the end");
    return 0;
}
#endif
#endif
