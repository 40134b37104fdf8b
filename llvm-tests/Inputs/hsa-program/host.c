// Runs the kernel of module.hip once, with 96 work-items. With the argument "down", shuts HSA down before it exits.
#include "../hsa.h"

int main(int argc, char **argv) {
    start();
    size_t size;
    void *bytes = read_file("module.hsaco", &size);
    hsa_executable_t executable = load(bytes, size);
    void **arguments = host_memory(8192);
    arguments[0] = (char *)arguments + 4096;
    hsa_queue_t *queue = queue_of(64, HSA_QUEUE_TYPE_MULTI);
    hsa_signal_t done = signal_of(1);
    launch_kernel(queue, executable, "entry.kd", 96, arguments, done, false);
    await(done);
    if (argc > 1 && !strcmp(argv[1], "down"))
        CHECK(hsa_shut_down());
}
