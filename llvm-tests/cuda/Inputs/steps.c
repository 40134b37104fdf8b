// Runs steps on the driver of fake-driver.c: the arguments, NAME[:ARGUMENT…], which step() lists.
//
// Linked with the driver; compiled with -DLOOKUP, it gets the driver's functions as the CUDA runtime does.
#define _GNU_SOURCE
#include "../../../src/runtime/devprof.h"
#include "../../Inputs/snapshots.h"
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// Name, version suffix, types of the arguments.
#define FUNCTIONS(f)                                                                           \
    f(cuInit, , (unsigned)) f(cuCtxCreate, , (void **, int)) f(cuCtxSetCurrent, , (void *))    \
    f(cuModuleLoad, , (void **, const char *)) f(cuModuleUnload, , (void *))                   \
    f(cuModuleLoadData, , (void **, const void *))                                             \
    f(cuModuleLoadDataEx, , (void **, const void *, unsigned, void *, void *))                 \
    f(cuModuleLoadFatBinary, , (void **, const void *))                                        \
    f(cuLinkAddData, _v2, (void *, int, const void *, size_t, const char *, unsigned, void *, void *))      \
    f(cuLinkAddFile, _v2, (void *, int, const char *, unsigned, void *, void *))                            \
    f(cuLibraryLoadFromFile, , (void **, const char *, void *, void *, unsigned, void *, void *, unsigned)) \
    f(cuLibraryLoadData, , (void **, const void *, void *, void *, unsigned, void *, void *, unsigned))     \
    f(cuLibraryGetModule, , (void **, void *)) f(cuLibraryUnload, , (void *))                  \
    f(cuLaunchKernel, , (void *))                                                              \
    f(cuCtxDestroy, _v2, (void *)) f(cuDevicePrimaryCtxReset, _v2, (int))                      \
    f(cuDevicePrimaryCtxRetain, , (void **, int)) f(cuDevicePrimaryCtxRelease, _v2, (int))     \
    f(cuStreamBeginCapture, _v2, (void *, int)) f(cuStreamEndCapture, , (void *, void **))                  \
    f(cuStreamBeginRecaptureToGraph, , (void *, int, void *, void *, void *)) f(cuStreamDestroy, _v2, (void *)) \
    f(cuGreenCtxCreate, , (void **, void *, int, unsigned)) f(cuGreenCtxDestroy, , (void *))                 \
    f(cuCtxFromGreenCtx, , (void **, void *))

// The fake driver's own.
#define FAKES(f)                                                                                                   \
    f(fake_context, (void **, int)) f(fake_load, (const char *)) f(fake_unload, (void *))                          \
    f(fake_count, (void *, const char *, int, uint64_t)) f(fake_cover, (void *, const char *, int)) f(fake_decide, (void *, const char *, int)) f(fake_run, (int)) f(fake_busy, (void)) f(fake_error, (int)) f(fake_await, (void)) f(fake_slow, (void *)) \
    f(fake_allocated, (void)) f(fake_waits, (void)) f(fake_synchronizations, (void)) f(fake_modules, (void)) f(fake_launches, (void))

#ifdef LOOKUP
#define POINTER(name, version, arguments) static int(*name) arguments;
FUNCTIONS(POINTER)
#define FAKE_POINTER(name, arguments) static void(*name) arguments;
FAKES(FAKE_POINTER)

static void look_up(void) {
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), *other = 0;
    int (*get)(const char *, void *, int, uint64_t, void *) = dlsym(driver, "cuGetProcAddress_v2");
    // The runtime gets this function from itself, too, and looks other names up than the program uses.
    if (!get || get("", &other, 0, 0, 0) == 0 || get("cuGetProcAddress", &get, 13000, 0, 0))
        abort();
    if (get("cuNothing", &other, 13000, 0, 0) != 500)
        abort();
#define GET(name, version, arguments)    \
    if (get(#name, &name, 13000, 0, 0)) \
        abort();
    FUNCTIONS(GET)
#define FAKE(name, arguments) name = dlsym(driver, #name);
    FAKES(FAKE)
    // The same function is the same address, however it is found.
    if (dlsym(driver, "cuModuleUnload") != (void *)cuModuleUnload)
        abort();
}
#else
#define DECLARE(name, version, arguments) int name##version arguments;
FUNCTIONS(DECLARE)
#define DECLARE_FAKE(name, arguments) void name arguments;
FAKES(DECLARE_FAKE)
#define cuCtxDestroy cuCtxDestroy_v2
#define cuDevicePrimaryCtxReset cuDevicePrimaryCtxReset_v2
#define cuDevicePrimaryCtxRelease cuDevicePrimaryCtxRelease_v2
#define cuStreamBeginCapture cuStreamBeginCapture_v2
#define cuStreamDestroy cuStreamDestroy_v2
#define cuLinkAddData cuLinkAddData_v2
#define cuLinkAddFile cuLinkAddFile_v2
static void look_up(void) {}
#endif

// Never freed: the driver keeps no copy.
static void *read_file(const char *path) {
    char *bytes = calloc(1, 1 << 20);
    FILE *file = fopen(path, "rb");
    if (!file || !fread(bytes, 1, (1 << 20) - 1, file))
        abort();
    fclose(file);
    return bytes;
}

#ifdef EMBEDDED
__asm__(".data\n.balign 8\nembedded: .incbin \"" EMBEDDED "\"\n.text");
extern const char embedded[];
#else
static const char embedded[1];
#endif

static void *wrap(void *fat) {
    struct {
        uint32_t magic, version;
        void *data, *files;
    } *wrapper = malloc(sizeof *wrapper);
    wrapper->magic = 0x466243b1;
    wrapper->version = 1;
    wrapper->data = fat;
    wrapper->files = 0;
    return wrapper;
}

static void *load_library(void *arguments) {
    void **context_and_file = arguments, *library;
    cuCtxSetCurrent(context_and_file[0]);
    cuLibraryLoadData(&library, read_file(context_and_file[1]), 0, 0, 0, 0, 0, 0);
    return NULL;
}

static void *module, *library;

static struct {
    const char *function;
    int counter;
    unsigned long long count;
} late;
static void count_late(void) {
    cuLaunchKernel(library);
    fake_count(module, late.function, late.counter, late.count);
}
static void unload_late(void) { cuModuleUnload(module); }

static void *context, *other, *graph;

// With an option that the driver changes.
static int load_with_log(char *file) {
    uintptr_t size = 100;
    int option = 4, error = cuModuleLoadDataEx(&module, read_file(file), 1, &option, &size);
    return error || printf("log: %zu\n", (size_t)size) < 0;
}

static int load_in_thread(char *file) {
    pthread_t thread;
    void *arguments[] = {context, file};
    int error = pthread_create(&thread, NULL, load_library, arguments);
    fake_await();
    return error;
}
static pthread_t unloading;
static void *kept;
static void *unload_slowly(void *module) {
    fake_slow(module);
    cuModuleUnload(module);
    return NULL;
}
static int unload_in_thread(void) {
    int error = pthread_create(&unloading, NULL, unload_slowly, kept);
    fake_await();
    return error;
}
static int collect_until_saved(void) {
    while (devprof_collect() != 0)
        usleep(1000);
    return 0;
}
static int await_child(void) {
    int status;
    if (fork() == 0)
        return 0;
    wait(&status);
    return printf("child: %d\n", WEXITSTATUS(status)) < 0;
}

// Executes a step, and returns whether it failed.
static int step(const char *name, char *argument) {
    char *second = argument ? strtok(NULL, ":") : NULL, *third = second ? strtok(NULL, ":") : NULL;
    int number = argument ? atoi(argument) : 0;
    void *stream = argument ? (void *)atol(argument) : NULL;
#define ON(step, action)     \
    if (!strcmp(name, step)) \
        return action;
    // Contexts, which become the current one. NUMBER: the device.
    ON("context", cuCtxCreate(&context, number) || cuCtxSetCurrent(context))
    ON("hidden", (fake_context(&context, number), cuCtxSetCurrent(context))) // by a function of which nobody knows
    ON("primary", cuDevicePrimaryCtxRetain(&context, number) || cuCtxSetCurrent(context))
    ON("retain", cuDevicePrimaryCtxRetain(&other, number)) // the device's primary context, which does not become the current one
    ON("release", cuDevicePrimaryCtxRelease(number))
    ON("reset", cuDevicePrimaryCtxReset(number)) // as cudaDeviceReset does
    ON("destroy", cuCtxDestroy(context))
    ON("green", cuGreenCtxCreate(&other, 0, number, 1) || cuCtxFromGreenCtx(&other, other) || cuCtxSetCurrent(other))
    ON("ungreen", cuCtxSetCurrent(context) || cuGreenCtxDestroy(other))
    // Modules, of a file, of its bytes, and of the wrapper of a fat binary.
    ON("module", cuModuleLoad(&module, argument))
    ON("data", cuModuleLoadData(&module, read_file(argument)))
    ON("options", cuModuleLoadDataEx(&module, read_file(argument), 0, 0, 0))
    ON("log", load_with_log(argument))
    // PTX for the linker, of its bytes and of a file.
    ON("link", cuLinkAddData(0, 1, read_file(argument), strlen(read_file(argument)), argument, 0, 0, 0))
    ON("link-file", cuLinkAddFile(0, 1, argument, 0, 0, 0))
    ON("fat", cuModuleLoadFatBinary(&module, read_file(argument)))
    ON("wrapper", cuModuleLoadFatBinary(&module, wrap(read_file(argument))))
    ON("damaged", (fake_load(argument), 0)) // an image that the driver does not read
    ON("unload", cuModuleUnload(module))
    ON("keep", (kept = module, 0))
    ON("unloading", unload_in_thread()) // what was kept, in another thread, which is not done before `unloaded`
    ON("unloaded", (fake_slow(NULL), pthread_join(unloading, NULL)))
    ON("vanish", (fake_unload(module), 0)) // no call is reported
    ON("unload-late", atexit(unload_late))
    // Libraries, likewise, and of bytes that are a part of the program (the file EMBEDDED).
    ON("library", cuLibraryLoadFromFile(&library, argument, 0, 0, 0, 0, 0, 0))
    ON("code", cuLibraryLoadData(&library, read_file(argument), 0, 0, 0, 0, 0, 0))
    ON("codes", cuLibraryLoadData(&library, wrap(read_file(argument)), 0, 0, 0, 0, 0, 0))
    ON("embedded", cuLibraryLoadData(&library, embedded, 0, 0, 0, 0, 0, 0))
    ON("stuck", load_in_thread(argument)) // in another thread, which waits for the kernel of `busy`
    ON("unlibrary", cuLibraryUnload(library))
    ON("use", cuLibraryGetModule(&module, library))
    ON("launch", cuLaunchKernel(library) || cuLibraryGetModule(&module, library)) // loads the module
    // What kernels and copies do. FUNCTION:COUNTER:NUMBER: the last module that was loaded or used counts.
    ON("count", (fake_count(module, argument, atoi(second), strtoull(third, NULL, 10)), 0))
    ON("cover", (fake_cover(module, argument, atoi(second)), 0)) // FUNCTION:BLOCK, of code with byte coverage
    ON("decide", (fake_decide(module, argument, atoi(second)), 0)) // FUNCTION:VECTOR, of code with MC/DC
    ON("late", (late.function = argument, late.counter = atoi(second), late.count = strtoull(third, NULL, 10), atexit(count_late)))
    ON("busy", (fake_busy(), 0))        // from now on, a kernel runs in the current context that never ends
    ON("running", (fake_run(1), 0))     // a kernel runs in the current context, until `idle`
    ON("occupied", (fake_run(2), 0))    // kernels that devprof launches in the current context do not run, until `idle`
    ON("blocked", (fake_run(3), 0))     // copies do not end, until `idle`
    ON("idle", (fake_run(0), 0))
    ON("error", (fake_error(number), 0)) // a kernel in the current context fails with this error
    // NUMBER: the stream that is captured.
    ON("capture", cuStreamBeginCapture(0, 0) || cuStreamEndCapture(0, &graph))
    ON("capturing", cuStreamBeginCapture(stream, 0))
    ON("recapturing", cuStreamBeginRecaptureToGraph(stream, 0, 0, 0, 0))
    ON("captured", cuStreamEndCapture(stream, &graph))
    ON("unstream", cuStreamDestroy(stream))
    // Prints: the number of loaded modules, of reports of launches that devprof has got, of bytes that are allocated on the
    // devices, and how often devprof has waited for its copies and for a context since the last time.
    ON("modules", (fake_modules(), 0))
    ON("launches", (fake_launches(), 0))
    ON("allocated", (fake_allocated(), 0))
    ON("waits", (fake_waits(), 0))
    ON("synchronizations", (fake_synchronizations(), 0))
    ON("collect", printf("collect: %d\n", devprof_collect()) < 0)
    ON("zero", printf("zero: %d\n", devprof_reset()) < 0)
    ON("saved", collect_until_saved())
    ON("snapshots", (await_snapshots(argument), 0))
    ON("fork", await_child()) // goes on in the child, and waits for it in the parent, which also goes on
    ON("kill", kill(getpid(), SIGKILL))
    return 1;
}

int main(int count, char **steps) {
    look_up();
    cuInit(0);
    for (int n = 1; n < count; n++) {
        char *name = strtok(steps[n], ":");
        if (step(name, strtok(NULL, ":"))) {
            printf("%s failed\n", name);
            return 1;
        }
    }
}
