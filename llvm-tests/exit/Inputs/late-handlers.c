// Preloaded: each handler that HIP registers for a signal starts 100 ms late. Prints how many handlers have not returned when
// HIP destroys its first queue while the process exits: such a handler may run while HIP is torn down, and crash.
//
// With -DALONE, the library takes the place of getpid in tools/simulator/gpu-model/start.c, which waits for HIP's handlers.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

typedef bool function(int64_t, void *);

struct handler {
    function *function;
    void *data;
};

static atomic_int registered, returned;
static atomic_bool is_exiting;

// The function of HSA's library, which may have been opened by the program.
static void *real(const char *name) {
    return dlsym(dlopen("libhsa-runtime64.so.1", RTLD_LAZY | RTLD_NOLOAD), name);
}

static void begin_exit(void) {
    is_exiting = true;
}

static bool call_late(int64_t value, void *data) {
    struct handler *handler = data;
    usleep(100000);
    bool again = handler->function(value, handler->data);
    returned += !again;
    return again;
}

int hsa_amd_signal_async_handler(uint64_t signal, unsigned condition, int64_t value, function *function, void *data) {
    int (*add)() = real("hsa_amd_signal_async_handler");
    struct handler *handler = malloc(sizeof *handler);
    *handler = (struct handler){function, data};
    if (!registered++)
        atexit(begin_exit);
    return add(signal, condition, value, call_late, handler);
}

int hsa_queue_destroy(void *queue) {
    int (*destroy)() = real("hsa_queue_destroy");
    static atomic_flag reported = ATOMIC_FLAG_INIT;
    if (is_exiting && !atomic_flag_test_and_set(&reported))
        fprintf(stderr, "handlers: %d, pending: %d\n", registered, registered - returned);
    return destroy(queue);
}

#ifdef ALONE
pid_t getpid(void) {
    return syscall(SYS_getpid);
}
#endif
