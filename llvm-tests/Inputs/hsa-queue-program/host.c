// a HOW N: launches kernels of N loop iterations and exits without waiting for them. If the environment variable DOWN
// is set, shuts HSA down first. With USE_HIP, it also uses HIP, which must be in the process.
//
// HOW: multi, single (the queue's type); full (fills the queue); again (collects twice, then launches again); reset
// (resets the counters, then launches again); destroyed, inactive (destroys or inactivates the queue); every (a queue
// on each GPU).
#include "hsa.h"
#include <dlfcn.h>

static hsa_queue_t *busy, *idle;

static void print_indices(void) {
    printf("busy: %lu packets, %lu taken\n", hsa_queue_load_write_index_relaxed(busy), hsa_queue_load_read_index_scacquire(busy));
    printf("idle: %lu packets, %lu taken\n", hsa_queue_load_write_index_relaxed(idle), hsa_queue_load_read_index_scacquire(idle));
}

static void dispatch(hsa_queue_t *queue, hsa_executable_t executable, int rounds) {
    struct { void *out; int rounds; } *arguments = host_memory(4096);
    arguments->out = host_memory(4096);
    arguments->rounds = rounds;
    // No barrier bit and no signal: kernels of a queue may overlap.
    launch_kernel(queue, executable, "entry.kd", 64, arguments, (hsa_signal_t){0}, false);
}

static void collect(void) {
    int (*collect)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "__llvm_profile_hip_collect_device_data");
    printf("collected: %d, %lu packets\n", collect(), hsa_queue_load_write_index_relaxed(busy));
}

static void use_hip(void) {
    int (*allocate)(void **, size_t) = (int (*)(void **, size_t))dlsym(RTLD_DEFAULT, "hipMalloc");
    int (*set)(void *, int, size_t) = (int (*)(void *, int, size_t))dlsym(RTLD_DEFAULT, "hipMemset");
    int (*synchronize)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "hipDeviceSynchronize");
    void *memory;
    if (allocate(&memory, 4096) || set(memory, 1, 4096) || synchronize())
        exit(1);
}

int main(int argc, char **argv) {
    const char *how = argv[1];
    int rounds = atoi(argv[2]);
    size_t size;
    void *bytes = read_file("module.hsaco", &size);
    if (!strcmp(how, "every")) {
        start();
        for (int n = 0; n < gpu_count; n++) {
            gpu = gpus[n];
            dispatch(queue_of(64, HSA_QUEUE_TYPE_MULTI), load(bytes, size), rounds);
        }
        return 0;
    }
    if (!getenv("DOWN") && strcmp(how, "destroyed"))
        atexit(print_indices);
    start();
    if (getenv("USE_HIP"))
        use_hip();
    hsa_executable_t executable = load(bytes, size);
    busy = queue_of(64, strcmp(how, "single") ? HSA_QUEUE_TYPE_MULTI : HSA_QUEUE_TYPE_SINGLE);
    idle = queue_of(64, HSA_QUEUE_TYPE_MULTI);
    int kernels = strcmp(how, "full") ? 1 : busy->size;
    while (kernels--)
        dispatch(busy, executable, rounds);
    if (!strcmp(how, "again")) {
        collect();
        collect();
        dispatch(busy, executable, rounds);
    }
    if (!strcmp(how, "reset")) {
        int (*reset)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "devprof_reset_counters");
        printf("reset: %d\n", reset());
        dispatch(busy, executable, 10);
    }
    if (!strcmp(how, "destroyed"))
        CHECK(hsa_queue_destroy(busy));
    if (!strcmp(how, "inactive"))
        CHECK(hsa_queue_inactivate(busy));
    if (getenv("DOWN"))
        CHECK(hsa_shut_down());
}
