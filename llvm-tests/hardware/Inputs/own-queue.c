// own-queue CODE_OBJECT: loads code objects, collects, resets and unloads. After each of these steps it waits until there is
// no queue any more, for a minute at most. The program itself creates none.
#include "hsa.h"
#include <dlfcn.h>

uint64_t hsa_sim_calls(const char *function);
uint64_t hsa_sim_live(uint32_t what);

static void step_is_over(const char *step) {
    static uint64_t before;
    uint64_t created = hsa_sim_calls("hsa_queue_create");
    const uint32_t queues = 3;
    for (int n = 0; n < 60000 && hsa_sim_live(queues); n++)
        usleep(1000);
    printf("%s: %s, %lu queues\n", step, created > before ? "was created" : "was not created", hsa_sim_live(queues));
    before = created;
}

static void devprof(const char *function) {
    int (*call)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, function);
    if (call())
        exit(1);
}

int main(int argc, char **argv) {
    start();
    size_t size;
    void *bytes = read_file(argv[argc - 1], &size);
    hsa_executable_t executables[8];
    for (int n = 0; n < 8; n++)
        executables[n] = load(bytes, size);
    step_is_over("load");
    devprof("__llvm_profile_hip_collect_device_data");
    step_is_over("collect");
    devprof("devprof_reset_counters");
    step_is_over("reset");
    for (int n = 0; n < 8; n++)
        CHECK(hsa_executable_destroy(executables[n]));
    step_is_over("unload");
}
