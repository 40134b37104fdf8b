// Stands for OpenMP's device runtime, which no Debian package has for AMD GPUs: the functions that LLVM's tests of offload
// profiles call, for one parallel region in a kernel. The kernel's environment says whether all threads execute the region
// (SPMD) or only the first one of each block; in the second case the others exit, so there must be no parallel region.
#include <gpuintrin.h>

#define EXPORT __attribute__((visibility("protected")))

// The beginning of KernelEnvironmentTy (llvm/Frontend/OpenMP/OMPDeviceConstants.h, offload/include/Shared/Environment.h).
struct environment {
    unsigned char generic_state_machine, nested_parallelism, mode;
};
enum { SPMD = 2 };

// Schedules of loops (kmp.h, sched_type): the others assign contiguous parts.
enum { STATIC_CHUNKED = 33, DISTRIBUTE_CHUNKED = 91, DISTRIBUTE_FOR_CHUNK_ONE = 93 };

EXPORT int __kmpc_target_init(struct environment *environment, void *launch) {
    return environment->mode & SPMD || __gpu_thread_id_x() == 0 ? -1 : (int)__gpu_thread_id_x();
}
EXPORT void __kmpc_target_deinit(void) {}
EXPORT int __kmpc_global_thread_num(void *location) { return __gpu_thread_id_x(); }
EXPORT int __kmpc_get_hardware_num_threads_in_block(void) { return __gpu_num_threads_x(); }

EXPORT void __kmpc_parallel_60(void *location, int thread, int is_parallel, int threads, int binding, void *region, void *wrapper,
                               void **arguments, long count, int strict) {
    int global = thread, bound = thread;
    switch (count) {
    case 1:
        return ((void (*)(int *, int *, void *))region)(&global, &bound, arguments[0]);
    case 3:
        return ((void (*)(int *, int *, void *, void *, void *))region)(&global, &bound, arguments[0], arguments[1], arguments[2]);
    default:
        __builtin_trap();
    }
}

// The iterations of one of `all` threads or blocks.
static void share(int which, int all, int is_chunked, int chunk, int step, int *lower, int *upper, int *stride) {
    int first = *lower, last = *upper, count = (last - first) / step + 1;
    int size = is_chunked ? chunk : (count + all - 1) / all;
    *lower = first + which * size * step;
    *upper = *lower + (size - 1) * step;
    *stride = all * size * step;
    if (!is_chunked && *upper > last)
        *upper = last;
}

EXPORT void __kmpc_for_static_init_4(void *location, int thread, int schedule, int *is_last, int *lower, int *upper,
                                     int *stride, int step, int chunk) {
    int threads = __gpu_num_threads_x(), which = __gpu_thread_id_x();
    if (schedule == DISTRIBUTE_FOR_CHUNK_ONE)
        which += __gpu_block_id_x() * threads, threads *= __gpu_num_blocks_x();
    share(which, threads, schedule == STATIC_CHUNKED || schedule == DISTRIBUTE_FOR_CHUNK_ONE, chunk, step, lower, upper, stride);
}
EXPORT void __kmpc_for_static_fini(void *location, int thread) {}

EXPORT void __kmpc_distribute_static_init_4(void *location, int thread, int schedule, int *is_last, int *lower, int *upper,
                                            int *stride, int step, int chunk) {
    share(__gpu_block_id_x(), __gpu_num_blocks_x(), schedule == DISTRIBUTE_CHUNKED, chunk, step, lower, upper, stride);
}
EXPORT void __kmpc_distribute_static_fini(void *location, int thread) {}
