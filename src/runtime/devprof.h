/* devprof: functions that a program may call. No call is required: devprof writes the counters when the program exits
 * and when code objects are unloaded.
 *
 * Link with libdevprof.a (for CUDA: libdevprof_cuda.a) or libdevprof.so (`pkg-config devprof`, CMake's
 * devprof::devprof). Or define DEVPROF_OPTIONAL before including this file, and run the program with or without devprof
 * (`devprof run`). Without devprof, the functions are then null pointers, and devprof_collect, devprof_reset, devprof_test
 * and the functions for traces do nothing and return 0.
 *
 * Each function may be called on any thread, at any time from the start of main to the end of the process. Concurrent
 * calls wait for each other. Do not call them in signal handlers. They throw no exceptions. They do not initialize HSA,
 * HIP or CUDA. If none of them is initialized (except devprof_trace_start and devprof_trace_stop), or in a child that was
 * forked while one was, they do nothing and return 0. Losses are reported on stderr, one per line. */
#ifndef DEVPROF_H
#define DEVPROF_H

#define DEVPROF_VERSION_MAJOR 0
#define DEVPROF_VERSION_MINOR 1
#define DEVPROF_VERSION_PATCH 0

#ifdef DEVPROF_OPTIONAL
#define DEVPROF_API __attribute__((weak))
#else
#define DEVPROF_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Waits for running kernels (at most DEVPROF_SYNC_MS milliseconds; the default is 10000), copies the counters of all
 * loaded code objects from all GPUs, and writes one file per code object (LLVM_PROFILE_FILE). Later calls update the
 * files. LLVM's host runtime calls this function when it writes the host profile.
 * Returns 0, or -1 if something was lost: a file could not be written, counters could not be read, or kernels still ran
 * at the time limit. Everything else is written. */
DEVPROF_API int __llvm_profile_hip_collect_device_data(void);

/* Waits for running kernels, as above, and resets the counters of all loaded code objects. Earlier counts are
 * discarded; files that were already written stay unchanged.
 * Returns 0, or -1 if counters could not be reset. */
DEVPROF_API int devprof_reset_counters(void);

/* If counts are attributed to tests (DEVPROF_TEST, `devprof cover --per-test`): the test that is running ends, and the test
 * NAME begins. Waits for running kernels, as above, writes what was counted since the last call to the directory of the
 * test that ends (tests/ next to the profiles), and resets the counters. The process's own files keep all counts. NAME may
 * be null: what is counted until the next call is of no test. Tests must not run at the same time in one process.
 * devprof/gtest.h and devprof/catch2.h call this function for each test.
 * Returns 0, also if counts are not attributed to tests, or -1 if something was lost. */
DEVPROF_API int devprof_test(const char *name);

/* Resets the host's counters, if the program contains LLVM's host runtime, and then the devices' counters. In a program
 * that is linked with the archive and -Wl,--wrap=__llvm_profile_reset_counters, it replaces
 * __llvm_profile_reset_counters. */
DEVPROF_API void __wrap___llvm_profile_reset_counters(void);

/* Start and stop the recording of the trace (DEVPROF_TRACE), if there is one. It records until it is stopped, unless it
 * begins stopped (DEVPROF_TRACE_STOPPED, DEVPROF_TRACE_START_AFTER). Both functions act at once and for all threads:
 * what was submitted before a stop is recorded, even if it completes later. They also have an effect before HSA is
 * initialized. The trace is recorded by the shared library; a program that is linked with the archive controls it, too.
 * Return 0, also if there is no trace or nothing changes, or -1 if another version of devprof in the process may have
 * the trace. */
DEVPROF_API int devprof_trace_start(void);
DEVPROF_API int devprof_trace_stop(void);

/* Waits (at most DEVPROF_SYNC_MS milliseconds) until everything that was submitted before this call is complete,
 * recorded and visible to other processes that read the trace.
 * Returns 0, also if there is no trace, or -1 if something is missing in the file. */
DEVPROF_API int devprof_trace_flush(void);

#ifdef DEVPROF_OPTIONAL
#define devprof_test(name) (devprof_test ? (devprof_test)(name) : 0)
#define devprof_trace_start() (devprof_trace_start ? (devprof_trace_start)() : 0)
#define devprof_trace_stop() (devprof_trace_stop ? (devprof_trace_stop)() : 0)
#define devprof_trace_flush() (devprof_trace_flush ? (devprof_trace_flush)() : 0)
#endif

/* Some compilers generate calls of these functions to register kernels and modules. They do nothing: devprof finds code
 * objects without registration. */
DEVPROF_API void __llvm_profile_offload_register_shadow_variable(void *variable);
DEVPROF_API void __llvm_profile_offload_register_section_shadow_variable(void *variable);
DEVPROF_API void __llvm_profile_offload_register_dynamic_module(int status, void **module, const void *image);
DEVPROF_API void __llvm_profile_offload_unregister_dynamic_module(void *module);

/* Shorter names for the first two functions. */
static inline int devprof_collect(void) {
#ifdef DEVPROF_OPTIONAL
    if (!__llvm_profile_hip_collect_device_data)
        return 0;
#endif
    return __llvm_profile_hip_collect_device_data();
}

static inline int devprof_reset(void) {
#ifdef DEVPROF_OPTIONAL
    if (!devprof_reset_counters)
        return 0;
#endif
    return devprof_reset_counters();
}

#ifdef __cplusplus
}
#endif

#endif
