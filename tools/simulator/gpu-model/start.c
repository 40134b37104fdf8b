// Preloaded into programs on the GPU model, by tools/rocm-env and `devprof run --model=rocr`: avoids three defects of AMD's
// libraries of version 7.2.4. devprof does not use this library, and it must not hide devprof's own defects.
//
// 1. In model mode, hsaKmtOpenKFD of ROCr allocates and clears a table whose size is an uninitialized variable
//    (sys_props.NumNodes), so it depends on the contents of the stack. A large value costs 0.2 to 9 seconds and gigabytes of
//    memory. With a small value ROCr writes beyond the end of the table and an assertion fails. ROCr reads environment
//    variables before that, so getenv fills the stack below its frame with a suitable number of nodes.
//
// 2. HIP can crash while the process exits. It registers handlers for signals (HsaAmdSignalHandler), which ROCr calls on a
//    thread of its own, and hipDeviceSynchronize waits for the signals, not for the handlers. A handler that starts while
//    ~RuntimeTearDown destroys HIP's devices or shuts HSA down releases the last reference to a queue and its kernels, and
//    with it frees what the teardown has freed: "double free or corruption", or a segmentation fault. Later versions wait
//    for their handlers in the teardown; here getpid does so, because that is the teardown's first call.
//
// 3. In model mode, two threads of ROCr and one of HIP poll for events all the time, with interrupts as without. They get a low
//    priority, so that on a busy machine the program's threads and the model run first.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { NODES = 16, STACK_WORDS = 8192 };

// The addresses of a library.
struct range {
    uintptr_t start, end, inside;
};

static struct range hip, rocr;
static atomic_bool is_exiting;
static int (*signal_create)(int64_t, uint32_t, const void *, uint64_t *);
static int (*signal_destroy)(uint64_t);
static int (*signal_async_handler)(uint64_t, int, int64_t, bool (*)(int64_t, void *), void *);
static int (*create_thread)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

// Sets the range if the address inside it is in this library.
static int find_range(struct dl_phdr_info *library, size_t size, void *data) {
    struct range *range = data;
    uintptr_t last = 0;
    bool is_inside = false;
    for (int n = 0; n < library->dlpi_phnum; n++) {
        const ElfW(Phdr) *segment = &library->dlpi_phdr[n];
        if (segment->p_type != PT_LOAD)
            continue;
        uintptr_t start = library->dlpi_addr + segment->p_vaddr, end = start + segment->p_memsz;
        is_inside |= start <= range->inside && range->inside < end;
        last = end > last ? end : last;
    }
    if (is_inside) {
        range->start = library->dlpi_addr;
        range->end = last;
    }
    (void)size;
    return is_inside;
}

// This takes no lock that a thread holds while it runs code of a library that it opens.
static void find_library(struct range *range, void *inside) {
    range->inside = (uintptr_t)inside;
    dl_iterate_phdr(find_range, range);
}

static bool is_in(const struct range *range, const void *address) {
    return range->start <= (uintptr_t)address && (uintptr_t)address < range->end;
}

static void begin_exit(void) {
    is_exiting = true;
}

// HIP is being initialized.
static void prepare_exit(void *in_hip) {
    void *hsa = dlopen("libhsa-runtime64.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (hip.end || !hsa)
        return;
    signal_create = dlsym(hsa, "hsa_signal_create");
    signal_destroy = dlsym(hsa, "hsa_signal_destroy");
    signal_async_handler = dlsym(hsa, "hsa_amd_signal_async_handler");
    find_library(&hip, in_hip);
    atexit(begin_exit);
}

__attribute__((noinline)) static void fill_stack(void) {
    unsigned words[STACK_WORDS];
    for (unsigned i = 0; i < STACK_WORDS; i++)
        words[i] = NODES;
    __asm__ volatile("" : : "r"(words) : "memory");
}

char *getenv(const char *name) {
    // Only HIP reads this variable.
    if (!strcmp(name, "HIP_ENABLE_DEFERRED_LOADING"))
        prepare_exit(__builtin_return_address(0));
    // Only ROCr reads this one, before it creates its threads.
    if (!strcmp(name, "HSA_ENABLE_INTERRUPT") && !rocr.end)
        find_library(&rocr, __builtin_return_address(0));
    fill_stack();
    size_t length = strlen(name);
    for (char **entry = environ; entry && *entry; entry++)
        if (!strncmp(*entry, name, length) && (*entry)[length] == '=')
            return *entry + length + 1;
    return NULL;
}

// How often ROCr's thread has called the handler.
static atomic_int calls;

// The thread calls handlers in turn: between the first and the second call it has called all handlers whose signals were
// complete at the first one.
static bool count_calls(int64_t value, void *data) {
    (void)value, (void)data;
    return atomic_fetch_add(&calls, 1) == 0;
}

// Waits until ROCr has called the handlers of all complete signals, but at most for a minute: HIP may be torn down on
// ROCr's thread.
static void wait_for_handlers(void) {
    uint64_t signal;
    if (signal_create(0, 0, NULL, &signal))
        return;
    const struct timespec millisecond = {0, 1000000};
    // 2: the signal's value is less than 1.
    if (!signal_async_handler(signal, 2, 1, count_calls, NULL))
        for (int n = 0; n < 60000 && calls < 2; n++)
            nanosleep(&millisecond, NULL);
    signal_destroy(signal);
}

struct thread {
    void *(*start)(void *);
    void *argument;
};

static void *start_with_low_priority(void *data) {
    struct thread thread = *(struct thread *)data;
    free(data);
    // On Linux, this is the priority of the calling thread. 10: the thread has a tenth of the share of other threads.
    (void)!nice(10);
    return thread.start(thread.argument);
}

// The first thread may be created while this library is being loaded, but never by several threads.
__attribute__((constructor)) static void find_create_thread(void) {
    create_thread = dlsym(RTLD_NEXT, "pthread_create");
}

int pthread_create(pthread_t *id, const pthread_attr_t *attributes, void *(*start)(void *), void *argument) {
    if (!create_thread)
        find_create_thread();
    const void *caller = __builtin_return_address(0);
    if (!is_in(&rocr, caller) && !is_in(&hip, caller))
        return create_thread(id, attributes, start, argument);
    struct thread *thread = malloc(sizeof *thread);
    if (!thread)
        return EAGAIN;
    *thread = (struct thread){start, argument};
    int error = create_thread(id, attributes, start_with_low_priority, thread);
    if (error)
        free(thread);
    return error;
}

pid_t getpid(void) {
    // The process that has initialized HIP. In a forked child there is no teardown, and ROCr's thread does not exist.
    static _Atomic pid_t initialized;
    static atomic_flag is_done = ATOMIC_FLAG_INIT;
    pid_t pid = syscall(SYS_getpid);
    if (is_in(&hip, __builtin_return_address(0))) {
        if (!is_exiting)
            initialized = pid;
        else if (initialized == pid && !atomic_flag_test_and_set(&is_done))
            wait_for_handlers();
    }
    return pid;
}
