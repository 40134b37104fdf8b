// Preloaded, says at the end of the program how many executables were loaded (hsa_executable_freeze).
#define _GNU_SOURCE
#include <dlfcn.h>
#include <hsa/hsa.h>
#include <stdio.h>

static int frozen;

hsa_status_t hsa_executable_freeze(hsa_executable_t executable, const char *options) {
    hsa_status_t (*next)(hsa_executable_t, const char *) =
        (hsa_status_t (*)(hsa_executable_t, const char *))dlsym(RTLD_NEXT, "hsa_executable_freeze");
    __atomic_add_fetch(&frozen, 1, __ATOMIC_RELAXED);
    return next(executable, options);
}

__attribute__((destructor)) static void say(void) { fprintf(stderr, "%d executables\n", frozen); }
