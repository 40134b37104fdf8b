// For programs that execute steps: the arguments after the first one, NAME[=VALUE], in the given order.
#pragma once
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The program's: an ON for each name.
static void step(const char *name, char *value);

#define ON(step, action)       \
    if (!strcmp(name, step)) { \
        action;                \
        return;                \
    }

static inline void execute(int argc, char **argv) {
    for (int n = 2; n < argc; n++) {
        char *value = strchr(argv[n], '=');
        if (value)
            *value++ = 0;
        step(argv[n], value);
    }
}

static inline void no_such_step(const char *name) {
    fprintf(stderr, "no such step: %s\n", name);
    exit(2);
}

// devprof's functions, linked or from a preloaded library.
int __llvm_profile_hip_collect_device_data(void) __attribute__((weak));
int devprof_reset_counters(void) __attribute__((weak));

static inline void print_call(const char *what, int (*linked)(void), const char *name) {
    int (*function)(void) = linked ? linked : (int (*)(void))dlsym(RTLD_DEFAULT, name);
    printf("%s: %d\n", what, function());
}

#define ON_DEVPROF                                                                                                     \
    ON("collect", print_call(name, __llvm_profile_hip_collect_device_data, "__llvm_profile_hip_collect_device_data"))  \
    ON("reset", print_call(name, devprof_reset_counters, "devprof_reset_counters"))
