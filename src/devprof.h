/* devprof: what a program may call. It need not call anything: when it ends, or something with kernels in it is
 * unloaded, devprof writes what was counted by itself.
 *
 * Link with libdevprof.a or libdevprof.so (`pkg-config devprof`, CMake's devprof::devprof), or define DEVPROF_OPTIONAL
 * before including this file and run the program with or without devprof (`devprof run`): functions that are not there
 * are then null pointers, and devprof_collect and devprof_reset do nothing and return 0.
 *
 * Every function may be called by any thread at any time between the start of main and the end of the process; calls
 * wait for one another. None may be called by a signal handler. None starts HSA or HIP, and where neither is alive
 * there is nothing to do. Nothing is thrown. In a child that was forked while HSA was alive they do nothing and return 0.
 * What is lost is said on stderr, a line each. */
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

/* Waits for the kernels that run (at most DEVPROF_SYNC_MS milliseconds, 10000 unless told otherwise), copies the
 * counters of every loaded code object from every GPU, and writes each one's file (LLVM_PROFILE_FILE), or writes it
 * again with what was counted since. LLVM's host runtime calls it when it writes the host's profile.
 * 0, or -1 when something was lost: a file that could not be written, counters that could not be read, kernels that ran
 * on past the limit. The rest is written all the same. */
DEVPROF_API int __llvm_profile_hip_collect_device_data(void);

/* Waits for the kernels that run, as above, and sets the counters of every loaded code object back to what they were
 * when it was loaded; what was counted before is forgotten, and files that were written stay.
 * 0, or -1 when the counters of something could not be set back. */
DEVPROF_API int devprof_reset_counters(void);

/* Sets the host's counters back, if LLVM's runtime is in the program, and then the devices'. What
 * __llvm_profile_reset_counters becomes in a program that is linked with the archive and
 * -Wl,--wrap=__llvm_profile_reset_counters. */
DEVPROF_API void __wrap___llvm_profile_reset_counters(void);

/* Called by objects that some compilers make, to tell of kernels and modules. They do nothing: devprof finds code
 * objects by itself. */
DEVPROF_API void __llvm_profile_offload_register_shadow_variable(void *variable);
DEVPROF_API void __llvm_profile_offload_register_section_shadow_variable(void *variable);
DEVPROF_API void __llvm_profile_offload_register_dynamic_module(int status, void **module, const void *image);
DEVPROF_API void __llvm_profile_offload_unregister_dynamic_module(void *module);

/* The first two by shorter names. */
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
