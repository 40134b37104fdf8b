// Runs steps on the driver of fake-driver.c. Each argument is a step:
//   context:DEVICE   create a context and make it the current one
//   hidden:DEVICE    the same, by a function of which nobody knows
//   primary:DEVICE   make the device's primary context the current one
//   retain:DEVICE    retain it                 release:DEVICE  release it
//   reset:DEVICE     as cudaDeviceReset does
//   green:DEVICE     create a green context and make it the current one     ungreen  destroy it
//   module:FILE      load a module           library:FILE  load a library
//   data:FILE, options:FILE, fat:FILE        load a module from memory: cuModuleLoadData, …Ex, cuModuleLoadFatBinary
//   wrapper:FILE     the same, from the wrapper of a fat binary
//   code:FILE        load a library from memory            codes:FILE  from the wrapper of a fat binary
//   embedded         load a library that is part of the program, the file EMBEDDED
//   damaged:FILE     load an image that the driver does not read
//   use              load the last library's module
//   launch           launch a kernel of the last library, which loads its module
//   modules          print how many modules are loaded
//   launches         print how many reports of launches devprof has got
//   busy             from now on, a kernel runs in the current context that never ends
//   stuck:FILE       load a library from memory in another thread, which waits for that kernel
//   vanish           unload the last module, and report no call
//   allocated        print the number of bytes that are allocated on the devices
//   waits            print how often devprof has waited for its copies since the last time
//   synchronizations print how often it has waited for a context since the last time
//   running          a kernel runs in the current context    idle  it is over
//   occupied         kernels that devprof launches in the current context do not run, until `idle`
//   blocked          copies do not end, until `idle`
//   count:F:N:COUNT  the last module that was loaded or used counts
//   unload           unload the last module  unlibrary     unload the last library
//   destroy          destroy the current context
//   capture          begin and end a stream capture
//   capturing:STREAM, recapturing:STREAM   begin a capture     captured:STREAM  end it     unstream:STREAM  destroy the stream
//   collect, zero    devprof_collect and devprof_reset, and print the results     saved  collect until it succeeds
//   late:F:N:COUNT   an exit handler that launches a kernel of the last library, and counts
//   unload-late      an exit handler that unloads the last module
//   fork             go on in a child, and wait for it in the parent
//   kill             end the process with SIGKILL           snapshots:FILE  wait for two snapshots
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

#ifdef LOOKUP
#define POINTER(name, version, arguments) static int(*name) arguments;
FUNCTIONS(POINTER)
static void (*fake_load)(const char *), (*fake_count)(void *, const char *, int, uint64_t);
static void (*fake_allocated)(void), (*fake_waits)(void), (*fake_modules)(void), (*fake_launches)(void), (*fake_unload)(void *), (*fake_busy)(void), (*fake_await)(void), (*fake_synchronizations)(void), (*fake_run)(int);
static void (*fake_context)(void **, int);

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
#define FAKE(name) name = dlsym(driver, #name)
    FAKE(fake_load);
    FAKE(fake_allocated);
    FAKE(fake_waits);
    FAKE(fake_count);
    FAKE(fake_modules);
    FAKE(fake_launches);
    FAKE(fake_unload);
    FAKE(fake_context);
    FAKE(fake_busy);
    FAKE(fake_await);
    FAKE(fake_synchronizations);
    FAKE(fake_run);
    // The same function is the same address, however it is found.
    if (dlsym(driver, "cuModuleUnload") != (void *)cuModuleUnload)
        abort();
}
#else
#define DECLARE(name, version, arguments) int name##version arguments;
FUNCTIONS(DECLARE)
void fake_load(const char *), fake_allocated(void), fake_waits(void), fake_count(void *, const char *, int, uint64_t);
void fake_modules(void), fake_launches(void), fake_unload(void *), fake_busy(void), fake_await(void), fake_synchronizations(void), fake_run(int), fake_context(void **, int);
#define cuCtxDestroy cuCtxDestroy_v2
#define cuDevicePrimaryCtxReset cuDevicePrimaryCtxReset_v2
#define cuDevicePrimaryCtxRelease cuDevicePrimaryCtxRelease_v2
#define cuStreamBeginCapture cuStreamBeginCapture_v2
#define cuStreamDestroy cuStreamDestroy_v2
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

int main(int count, char **steps) {
    void *context = 0, *other = 0, *graph = 0;
    look_up();
    cuInit(0);
    for (int n = 1; n < count; n++) {
        char *step = strtok(steps[n], ":"), *argument = strtok(NULL, ":");
        int error = 0;
        if (!strcmp(step, "context"))
            error = cuCtxCreate(&context, atoi(argument)) || cuCtxSetCurrent(context);
        else if (!strcmp(step, "hidden"))
            fake_context(&context, atoi(argument)), error = cuCtxSetCurrent(context);
        else if (!strcmp(step, "primary"))
            error = cuDevicePrimaryCtxRetain(&context, atoi(argument)) || cuCtxSetCurrent(context);
        else if (!strcmp(step, "retain"))
            error = cuDevicePrimaryCtxRetain(&other, atoi(argument));
        else if (!strcmp(step, "green"))
            error = cuGreenCtxCreate(&other, 0, atoi(argument), 1) || cuCtxFromGreenCtx(&other, other) || cuCtxSetCurrent(other);
        else if (!strcmp(step, "ungreen"))
            error = cuCtxSetCurrent(context) || cuGreenCtxDestroy(other);
        else if (!strcmp(step, "release"))
            error = cuDevicePrimaryCtxRelease(atoi(argument));
        else if (!strcmp(step, "module"))
            error = cuModuleLoad(&module, argument);
        else if (!strcmp(step, "data"))
            error = cuModuleLoadData(&module, read_file(argument));
        else if (!strcmp(step, "options"))
            error = cuModuleLoadDataEx(&module, read_file(argument), 0, 0, 0);
        else if (!strcmp(step, "fat"))
            error = cuModuleLoadFatBinary(&module, read_file(argument));
        else if (!strcmp(step, "wrapper"))
            error = cuModuleLoadFatBinary(&module, wrap(read_file(argument)));
        else if (!strcmp(step, "damaged"))
            fake_load(argument);
        else if (!strcmp(step, "library"))
            error = cuLibraryLoadFromFile(&library, argument, 0, 0, 0, 0, 0, 0);
        else if (!strcmp(step, "code"))
            error = cuLibraryLoadData(&library, read_file(argument), 0, 0, 0, 0, 0, 0);
        else if (!strcmp(step, "codes"))
            error = cuLibraryLoadData(&library, wrap(read_file(argument)), 0, 0, 0, 0, 0, 0);
        else if (!strcmp(step, "embedded"))
            error = cuLibraryLoadData(&library, embedded, 0, 0, 0, 0, 0, 0);
        else if (!strcmp(step, "use"))
            error = cuLibraryGetModule(&module, library);
        else if (!strcmp(step, "launch"))
            error = cuLaunchKernel(library) || cuLibraryGetModule(&module, library);
        else if (!strcmp(step, "modules"))
            fake_modules();
        else if (!strcmp(step, "launches"))
            fake_launches();
        else if (!strcmp(step, "busy"))
            fake_busy();
        else if (!strcmp(step, "stuck")) {
            pthread_t thread;
            void *arguments[] = {context, argument};
            error = pthread_create(&thread, NULL, load_library, arguments);
            fake_await();
        } else if (!strcmp(step, "vanish"))
            fake_unload(module);
        else if (!strcmp(step, "allocated"))
            fake_allocated();
        else if (!strcmp(step, "waits"))
            fake_waits();
        else if (!strcmp(step, "synchronizations"))
            fake_synchronizations();
        else if (!strcmp(step, "running"))
            fake_run(1);
        else if (!strcmp(step, "occupied"))
            fake_run(2);
        else if (!strcmp(step, "blocked"))
            fake_run(3);
        else if (!strcmp(step, "idle"))
            fake_run(0);
        else if (!strcmp(step, "late")) {
            late.function = argument;
            late.counter = atoi(strtok(NULL, ":"));
            late.count = strtoull(strtok(NULL, ":"), NULL, 10);
            error = atexit(count_late);
        } else if (!strcmp(step, "count")) {
            int counter = atoi(strtok(NULL, ":"));
            fake_count(module, argument, counter, strtoull(strtok(NULL, ":"), NULL, 10));
        } else if (!strcmp(step, "unload"))
            error = cuModuleUnload(module);
        else if (!strcmp(step, "unload-late"))
            error = atexit(unload_late);
        else if (!strcmp(step, "unlibrary"))
            error = cuLibraryUnload(library);
        else if (!strcmp(step, "destroy"))
            error = cuCtxDestroy(context);
        else if (!strcmp(step, "reset"))
            error = cuDevicePrimaryCtxReset(atoi(argument));
        else if (!strcmp(step, "capture"))
            error = cuStreamBeginCapture(0, 0) || cuStreamEndCapture(0, &graph);
        else if (!strcmp(step, "capturing"))
            error = cuStreamBeginCapture((void *)atol(argument), 0);
        else if (!strcmp(step, "recapturing"))
            error = cuStreamBeginRecaptureToGraph((void *)atol(argument), 0, 0, 0, 0);
        else if (!strcmp(step, "captured"))
            error = cuStreamEndCapture((void *)atol(argument), &graph);
        else if (!strcmp(step, "unstream"))
            error = cuStreamDestroy((void *)atol(argument));
        else if (!strcmp(step, "saved"))
            while (devprof_collect() != 0)
                usleep(1000);
        else if (!strcmp(step, "collect"))
            printf("collect: %d\n", devprof_collect());
        else if (!strcmp(step, "zero"))
            printf("zero: %d\n", devprof_reset());
        else if (!strcmp(step, "fork")) {
            if (fork()) {
                int status;
                wait(&status);
                printf("child: %d\n", WEXITSTATUS(status));
            }
        } else if (!strcmp(step, "kill"))
            kill(getpid(), SIGKILL);
        else if (!strcmp(step, "snapshots"))
            await_snapshots(argument);
        else
            error = 1;
        if (error) {
            printf("%s failed\n", step);
            return 1;
        }
    }
}
