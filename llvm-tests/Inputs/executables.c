// Preloaded: at exit, prints how many executables were loaded (calls of hsa_executable_freeze).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <hsa/hsa.h>
#include <stdio.h>

static int executables;

hsa_status_t hsa_executable_freeze(hsa_executable_t executable, const char *options) {
    hsa_status_t (*next)(hsa_executable_t, const char *) =
        (hsa_status_t (*)(hsa_executable_t, const char *))dlsym(RTLD_NEXT, "hsa_executable_freeze");
    __atomic_add_fetch(&executables, 1, __ATOMIC_RELAXED);
    return next(executable, options);
}

__attribute__((destructor)) static void print_count(void) { fprintf(stderr, "%d executables\n", executables); }
