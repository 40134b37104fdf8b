// counter-copies CODE_OBJECT NAME[=VALUE]…: executes the steps of step() in the given order on all GPUs.
#include "execute.h"
#include "hsa.h"

enum { MOST = 1024, ITEMS = 80 };

static struct {
    hsa_queue_t *queue;
    uint32_t units;
    hsa_executable_t loaded[MOST];
} of[GPUS];
static int loaded;
static void *code_object, *arguments;
static size_t size;
static hsa_signal_t done;

struct copies {
    uint64_t offset;
    uint32_t stride, full, mask, last;
};

static void begin(const char *file) {
    start();
    code_object = read_file(file, &size);
    done = signal_of(0);
    arguments = host_memory(4096);
    *(void **)arguments = (char *)arguments + 64;
    CHECK(hsa_amd_agents_allow_access(gpu_count, gpus, NULL, arguments));
    for (int g = 0; g < gpu_count; g++) {
        gpu = gpus[g];
        CHECK(hsa_agent_get_info(gpu, (hsa_agent_info_t)HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT, &of[g].units));
        of[g].queue = queue_of(64, HSA_QUEUE_TYPE_MULTI);
    }
}

static uint64_t value_of(int g, int n, const char *name, hsa_executable_symbol_info_t attribute) {
    gpu = gpus[g];
    return symbol_u64(of[g].loaded[n], name, attribute);
}

// Runs the kernel `branch` with groups of 80 work-items. As HIP does: acquires and releases only to agent scope.
static void run(int g, int n, int groups) {
    hsa_kernel_dispatch_packet_t packet = {0};
    packet.setup = 1;
    packet.workgroup_size_x = ITEMS;
    packet.workgroup_size_y = packet.workgroup_size_z = packet.grid_size_y = packet.grid_size_z = 1;
    packet.grid_size_x = groups * ITEMS;
    packet.private_segment_size = value_of(g, n, "branch.kd", HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE);
    packet.kernel_object = value_of(g, n, "branch.kd", HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT);
    packet.kernarg_address = arguments;
    packet.completion_signal = done;
    hsa_signal_store_relaxed(done, 1);
    hsa_queue_t *queue = of[g].queue;
    uint64_t index = hsa_queue_add_write_index_scacq_screl(queue, 1);
    put(queue, index, &packet,
        HSA_PACKET_TYPE_KERNEL_DISPATCH << HSA_PACKET_HEADER_TYPE |
            HSA_FENCE_SCOPE_AGENT << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
            HSA_FENCE_SCOPE_AGENT << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE);
    ring(queue, index);
    await(done);
}

// 0: as many groups as units.
static void run_all(int groups) {
    for (int g = 0; g < gpu_count; g++)
        for (int n = 0; n < loaded; n++)
            run(g, n, groups ? groups : (int)of[g].units);
}

static void load_more(int count) {
    for (; count > 0; count--, loaded++) {
        if (loaded == MOST)
            exit(2);
        for (int g = 0; g < gpu_count; g++)
            of[g].loaded[loaded] = load_on(gpus[g], code_object, size);
    }
}

static void unload(void) {
    for (; loaded > 0; loaded--)
        for (int g = 0; g < gpu_count; g++)
            CHECK(hsa_executable_destroy(of[g].loaded[loaded - 1]));
}

// Copies from the device.
static void *read_device(uint64_t from, size_t bytes) {
    void *to;
    CHECK(hsa_amd_memory_pool_allocate(pool_of(cpu, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED), bytes, 0, &to));
    CHECK(hsa_memory_copy(to, (void *)from, bytes));
    return to;
}

static uint64_t variable(int g, int n) {
    return value_of(g, n, "__devprof_counter_copies", HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS);
}

// How many copies the counters of each have, and how many of them are not zero. `sharing`: how many compute units share a copy
// at most, after one `run=units`.
static void print_copies(int sharing) {
    for (int g = 0; g < gpu_count; g++)
        for (int n = 0; n < loaded; n++) {
            struct copies *copies = read_device(variable(g, n), sizeof *copies);
            if (copies->full == 0) {
                puts("copies: 0");
            } else {
                // The counters of `branch` are in the counters' section: its copies are at the same offset.
                uint64_t counter = value_of(g, n, "__profc_branch", HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS);
                uint64_t size = 2 * copies->full, last = (uint64_t)copies->last * copies->stride / size, most = 0;
                uint32_t used = 0;
                for (uint64_t m = 0; m <= last; m++) {
                    uint64_t *partial = read_device(counter + copies->offset + m * size, 8);
                    uint64_t *full = read_device(counter + copies->offset + m * size + copies->full, 8);
                    used += *partial || *full;
                    if (*partial + *full > most)
                        most = *partial + *full;
                    CHECK(hsa_amd_memory_pool_free(partial));
                    CHECK(hsa_amd_memory_pool_free(full));
                }
                if (sharing)
                    printf("sharing: %u units use %u of %lu copies, at most %lu use the same\n", of[g].units, used,
                           last + 1, most / ITEMS);
                else
                    printf("copies: %lu of %lu bytes, %u used, mask %u\n", last + 1, size, used, copies->mask);
            }
            CHECK(hsa_amd_memory_pool_free(copies));
        }
}

// Writes to each of the 32-bit words after the first one of the variable.
static void set(uint32_t value) {
    uint32_t *words = host_memory(4096);
    for (int n = 0; n < 6; n++)
        words[n] = n == 0 ? 0 : value;
    for (int g = 0; g < gpu_count; g++)
        for (int n = 0; n < loaded; n++)
            CHECK(hsa_memory_copy((void *)variable(g, n), words, 24));
}

// Allocates memory of the first GPU until less than so many KiB are left.
static void fill(uint64_t left) {
    uint64_t available;
    for (;;) {
        hsa_agent_info_t attribute = (hsa_agent_info_t)HSA_AMD_AGENT_INFO_MEMORY_AVAIL;
        CHECK(hsa_agent_get_info(gpus[0], attribute, &available));
        if (available < left << 10)
            return;
        void *unused;
        hsa_amd_memory_pool_t pool = pool_of(gpus[0], HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED);
        CHECK(hsa_amd_memory_pool_allocate(pool, 4096, 0, &unused));
    }
}

static void cycle(int number) {
    for (; number > 0; number--) {
        load_more(1);
        run_all(3);
        unload();
    }
}

// The number of allocations from memory pools (on the simulator).
static void print_memory(void) {
    uint64_t (*live)(uint32_t);
    *(void **)&live = dlsym(RTLD_DEFAULT, "hsa_sim_live");
    printf("memory: %lu\n", live(1));
}

static void step(const char *name, char *value) {
    int number = value ? atoi(value) : 0;
    ON("load", load_more(number)) // so many more code objects
    ON("run", run_all(number)) // so many groups for each of them; units: one for each compute unit of the GPU
    ON("unload", unload())
    ON("cycle", cycle(number))
    ON("copies", print_copies(0))
    ON("sharing", print_copies(1))
    ON("set", set(number))
    ON_DEVPROF
    ON("fill", fill(number))
    ON("memory", print_memory())
    ON("down", CHECK(hsa_shut_down()))
    no_such_step(name);
}

int main(int argc, char **argv) {
    begin(argv[1]);
    execute(argc, argv);
}
