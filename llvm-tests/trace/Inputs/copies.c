// Copies memory with HSA's functions: copies [ROUNDS] WHAT… (the functions below). It prints whether the results are right, and the
// statuses of calls that fail.
#include "hsa.h"
#include <dlfcn.h>

enum { SIZE = 4096 };

// Memory of each GPU, and pinned memory of the host, all accessible for all GPUs.
static char *device[GPUS], *device2, *host, *host2;

static char *allocate(hsa_agent_t agent, uint32_t flags) {
    void *memory;
    CHECK(hsa_amd_memory_pool_allocate(pool_of(agent, flags), SIZE, 0, &memory));
    CHECK(hsa_amd_agents_allow_access(gpu_count, gpus, NULL, memory));
    return memory;
}

// Waits until the signal has the value 0 or less, without a pause.
static void spin(hsa_signal_t signal) {
    while (hsa_signal_load_scacquire(signal) > 0)
        ;
}

static void async(char *to, hsa_agent_t to_agent, const char *from, hsa_agent_t from_agent, size_t size, hsa_signal_t signal) {
    CHECK(hsa_amd_memory_async_copy(to, to_agent, from, from_agent, size, 0, NULL, signal));
}

static void copy(char *to, hsa_agent_t to_agent, const char *from, hsa_agent_t from_agent, size_t size) {
    hsa_signal_t signal = signal_of(1);
    async(to, to_agent, from, from_agent, size, signal);
    spin(signal);
    CHECK(hsa_signal_destroy(signal));
}

static int rounds;

// One signal that is used again as soon as it is complete, with each function that can set it.
static void reuse(void) {
    hsa_signal_t signal = signal_of(0);
    int wrong = 0;
    for (int n = 0; n < rounds; n++) {
        switch (n % 4) {
        case 0: hsa_signal_store_relaxed(signal, 1); break;
        case 1: hsa_signal_exchange_scacq_screl(signal, 1); break;
        case 2: hsa_signal_cas_scacq_screl(signal, 0, 1); break;
        case 3: hsa_signal_add_screlease(signal, 1); break;
        }
        if (n % 2 == 0) {
            *(int *)host = n;
            async(device[0], gpu, host, cpu, 64 + n % 32, signal);
        } else {
            async(host2, cpu, device[0], gpu, 64 + n % 32, signal);
        }
        spin(signal);
        wrong += n % 2 && *(int *)host2 != n - 1;
    }
    hsa_signal_value_t value = hsa_signal_load_relaxed(signal);
    CHECK(hsa_signal_destroy(signal));
    printf("reuse: wrong %d, value %ld\n", wrong, value);
}

// A signal per copy, which is destroyed as soon as it is complete.
static void destroyed(void) {
    int wrong = 0;
    for (int n = 0; n < rounds; n++) {
        *(int *)host = n;
        copy(device[0], gpu, host, cpu, 100);
        copy(host2, cpu, device[0], gpu, 100);
        wrong += *(int *)host2 != n;
    }
    printf("destroyed: wrong %d\n", wrong);
}

// Many copies in flight at the same time, which wait for a signal.
static void flight(void) {
    // More of them block ROCr's model mode.
    enum { MANY = 32 };
    hsa_signal_t done[MANY];
    hsa_signal_t gate = signal_of(1);
    memset(host, 7, SIZE);
    for (int n = 0; n < MANY; n++) {
        done[n] = signal_of(1);
        CHECK(hsa_amd_memory_async_copy(device[0] + n, gpu, host, cpu, 1, 1, &gate, done[n]));
    }
    hsa_signal_store_screlease(gate, 0);
    for (int n = 0; n < MANY; n++) {
        spin(done[n]);
        CHECK(hsa_signal_destroy(done[n]));
    }
    copy(host2, cpu, device[0], gpu, SIZE);
    printf("flight: %s\n", memcmp(host2, host, MANY) ? "wrong" : "right");
}

// More copies in flight than devprof watches signals.
static void crowd(void) {
    enum { MANY = 20000 };
    static hsa_signal_t done[MANY];
    hsa_signal_t gate = signal_of(1);
    for (int n = 0; n < MANY; n++) {
        done[n] = signal_of(1);
        CHECK(hsa_amd_memory_async_copy(device[0], gpu, host, cpu, 1, 1, &gate, done[n]));
    }
    hsa_signal_store_screlease(gate, 0);
    for (int n = 0; n < MANY; n++)
        spin(done[n]);
    copy(host2, cpu, device[0], gpu, 2);
    printf("crowd\n");
}

// The times of copies, as the program reads them.
static void times(void) {
    hsa_signal_t signal = signal_of(1);
    CHECK(hsa_amd_profiling_async_copy_enable(true));
    for (int n = 0; n < 40; n++) {
        static char *const to[] = {"host to device", "device to host", "device to device", "host to host"};
        hsa_amd_profiling_async_copy_time_t time;
        hsa_signal_store_relaxed(signal, 1);
        switch (n % 4) {
        case 0: async(device[0], gpu, host, cpu, 1 + n, signal); break;
        case 1: async(host2, cpu, device[0], gpu, 1 + n, signal); break;
        case 2: async(device2, gpu, device[0], gpu, 1 + n, signal); break;
        case 3: async(host2, cpu, host, cpu, 1 + n, signal); break;
        }
        spin(signal);
        CHECK(hsa_amd_profiling_get_async_copy_time(signal, &time));
        printf("%s of %d bytes: start=%lu end=%lu\n", to[n % 4], 1 + n, time.start, time.end);
    }
}

// A signal that counts several copies: it contains the times of one of them only.
static void shared(void) {
    hsa_signal_t gate = signal_of(1), signal = signal_of(5);
    memset(host, 9, SIZE);
    // Without the gate, the signal could be 1 when the last copy is requested, which would then have it alone.
    for (int n = 0; n < 5; n++)
        CHECK(hsa_amd_memory_async_copy(device[0] + n * 8, gpu, host, cpu, 8, 1, &gate, signal));
    hsa_signal_store_screlease(gate, 0);
    spin(signal);
    copy(host2, cpu, device[0], gpu, 40);
    printf("shared: %s\n", memcmp(host2, host, 40) ? "wrong" : "right");
}

// Memory that HSA does not know.
static void unknown(void) {
    char *pageable = malloc(SIZE);
    memset(pageable, 5, SIZE);
    CHECK(hsa_memory_copy(device[0], pageable, 2000));
    memset(pageable, 0, SIZE);
    CHECK(hsa_memory_copy(pageable, device[0], 1900));
    CHECK(hsa_memory_copy(pageable + 2000, pageable, 1800));
    printf("unknown: %d %d\n", pageable[1899], pageable[3799]);
    free(pageable);
}

// Every function, and calls that fail or copy nothing.
static void kinds(void) {
    hsa_signal_t signal = signal_of(1);
    char original[SIZE];
    for (int n = 0; n < SIZE; n++)
        original[n] = host[n] = n * 3;
    CHECK(hsa_memory_copy(host2, host, 1000));
    CHECK(hsa_memory_copy(device[0], host, 2000));
    memset(host, 0, SIZE);
    copy(device2, gpu, device[0], gpu, 1500);
    copy(host, cpu, device2, gpu, 1400);
    copy(host2, cpu, host, cpu, 1300);
    printf("kinds: %s\n", memcmp(host2, original, 1300) ? "wrong" : "right");
    CHECK(hsa_amd_memory_fill(device[0], 0x01020304, 25));
    CHECK(hsa_memory_copy(host, device[0], 100));
    printf("fill: %x %x\n", *(unsigned *)host, *(unsigned *)(host + 96));
    CHECK(hsa_amd_memory_async_copy_on_engine(device[0], gpu, host, cpu, 600, 0, NULL, signal, HSA_AMD_SDMA_ENGINE_1, false));
    spin(signal);

    hsa_signal_store_relaxed(signal, 1);
    STATUS(hsa_memory_copy(NULL, host, 4));
    STATUS(hsa_memory_copy(host, host2, 0));
    STATUS(hsa_amd_memory_fill(NULL, 0, 4));
    STATUS(hsa_amd_memory_async_copy(NULL, gpu, host, cpu, 4, 0, NULL, signal));
    STATUS(hsa_amd_memory_async_copy(device[0], gpu, host, cpu, 4, 1, NULL, signal));
    STATUS(hsa_amd_memory_async_copy(device[0], gpu, host, cpu, 0, 0, NULL, signal));
    STATUS(hsa_amd_memory_async_copy_rect(NULL, NULL, NULL, NULL, NULL, gpu, hsaHostToDevice, 0, NULL, signal));
    printf("value %ld\n", hsa_signal_load_relaxed(signal));
    // The signal is not in use after the calls that failed.
    async(device[0], gpu, host, cpu, 700, signal);
    spin(signal);
    CHECK(hsa_signal_destroy(signal));
}

// Three layers of two rows each, of 40 bytes. ROCr has this function only if it has copy engines.
static void rect(void) {
    hsa_signal_t signal = signal_of(1);
    for (int n = 0; n < SIZE; n++)
        host[n] = n % 251;
    memset(host2, 0, SIZE);
    hsa_pitched_ptr_t from = {host, 64, 256}, middle = {device[0], 128, 512}, to = {host2, 64, 256};
    hsa_dim3_t none = {0, 0, 0}, offset = {4, 1, 0}, range = {40, 2, 3}, empty = {40, 0, 3};
    hsa_status_t status =
        hsa_amd_memory_async_copy_rect(&middle, &none, &from, &offset, &range, gpu, hsaHostToDevice, 0, NULL, signal);
    if (status != HSA_STATUS_SUCCESS) {
        printf("rect: %#x\n", status);
        return;
    }
    spin(signal);
    hsa_signal_store_relaxed(signal, 1);
    STATUS(hsa_amd_memory_async_copy_rect(&to, &offset, &middle, &none, &empty, gpu, hsaDeviceToHost, 0, NULL, signal));
    CHECK(hsa_amd_memory_async_copy_rect(&to, &offset, &middle, &none, &range, gpu, hsaDeviceToHost, 0, NULL, signal));
    spin(signal);
    int wrong = 0;
    for (int n = 0; n < SIZE; n++) {
        int x = n % 64, y = n % 256 / 64, z = n / 256;
        bool copied = x >= 4 && x < 44 && y >= 1 && y < 3 && z < 3;
        wrong += host2[n] != (copied ? host[n] : 0);
    }
    printf("rect: wrong %d\n", wrong);
    CHECK(hsa_signal_destroy(signal));
}

// From each GPU to the next one, around.
static void peers(void) {
    strcpy(host, "around");
    copy(device[0], gpus[0], host, cpu, 8);
    for (int n = 0; n < gpu_count; n++)
        copy(device[(n + 1) % gpu_count], gpus[(n + 1) % gpu_count], device[n], gpus[n], 8 + n);
    memset(host2, 0, SIZE);
    copy(host2, cpu, device[0], gpus[0], 8);
    printf("peers: %s\n", host2);
}

// The program turns off the times of copies, or reads them itself.
static void profiling(void) {
    hsa_amd_profiling_async_copy_time_t time = {1, 0};
    hsa_signal_t signal = signal_of(1);
    CHECK(hsa_amd_profiling_async_copy_enable(true));
    async(device[0], gpu, host, cpu, 300, signal);
    spin(signal);
    CHECK(hsa_amd_profiling_get_async_copy_time(signal, &time));
    printf("profiling: %s\n", time.start <= time.end ? "ordered" : "not ordered");
    CHECK(hsa_amd_profiling_async_copy_enable(false));
    hsa_signal_t other = signal_of(1);
    async(device[0], gpu, host, cpu, 301, other);
    spin(other);
}

// The signal is changed before its copy is complete, and used by two copies at once.
static void misused(void) {
    hsa_signal_t gate = signal_of(1), signal = signal_of(1), both = signal_of(1);
    CHECK(hsa_amd_memory_async_copy(device[0], gpu, host, cpu, 401, 1, &gate, signal));
    hsa_signal_add_relaxed(signal, 6);
    CHECK(hsa_amd_memory_async_copy(device[0], gpu, host, cpu, 402, 1, &gate, both));
    CHECK(hsa_amd_memory_async_copy(device[0], gpu, host, cpu, 403, 1, &gate, both));
    hsa_signal_store_screlease(gate, 0);
    while (hsa_signal_load_scacquire(signal) > 6 || hsa_signal_load_scacquire(both) > -1)
        ;
    printf("misused: %ld %ld\n", hsa_signal_load_relaxed(signal), hsa_signal_load_relaxed(both));
}

// Copies that never start.
static void unfinished(void) {
    hsa_signal_t gate = signal_of(1);
    for (int n = 0; n < 3; n++)
        CHECK(hsa_amd_memory_async_copy(device[0], gpu, host, cpu, 501, 1, &gate, signal_of(1)));
    printf("unfinished\n");
    fflush(stdout);
    exit(0);
}

// The program stops the recording for some copies.
static void control(void) {
    void (*start)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "devprof_trace_start");
    void (*stop)(void) = (void (*)(void))dlsym(RTLD_DEFAULT, "devprof_trace_stop");
    copy(device[0], gpu, host, cpu, 801);
    if (stop)
        stop();
    copy(device[0], gpu, host, cpu, 802);
    CHECK(hsa_memory_copy(host2, host, 803));
    if (start)
        start();
    copy(device[0], gpu, host, cpu, 804);
    printf("control\n");
}

// hsa_amd_memory_copy_op_t of ROCm 10.
struct operation {
    uint16_t version, type, entries, traffic_class;
    hsa_signal_t completion;
    void *from;
    hsa_agent_t from_agent;
    uint64_t to_agent;
    void *to;
    uint64_t size, to_size, rest[8];
};

static void batch(void) {
    typedef hsa_status_t batch_copy(const struct operation *, uint32_t, uint32_t, const hsa_signal_t *);
    batch_copy *function = (batch_copy *)dlsym(RTLD_DEFAULT, "hsa_amd_memory_async_batch_copy");
    if (!function) {
        printf("batch: missing\n");
        return;
    }
    strcpy(host, "batch");
    hsa_signal_t done[3] = {signal_of(1), signal_of(1), signal_of(1)};
    char *targets[2] = {device2, device[0] + 512}, *sources[2] = {host, host};
    hsa_agent_t agents[2] = {gpu, gpu};
    uint64_t sizes[2] = {30, 12};
    struct operation all[3] = {
        {1, 0, 0, 0, done[0], host, cpu, gpu.handle, device[0], 10, 0, {0}},
        {1, 0, 2, 0, done[1], sources, cpu, (uint64_t)agents, targets, (uint64_t)sizes, 0, {0}},
        {1, 1, 2, 0, done[2], host, cpu, (uint64_t)agents, targets, 50, 0, {0}},
    };
    CHECK(function(all, 3, 0, NULL));
    for (int n = 0; n < 3; n++)
        spin(done[n]);
    copy(host2, cpu, device[0] + 512, gpu, 8);
    printf("batch: %s\n", host2);
    STATUS(function(NULL, 0, 0, NULL));
    all[1].type = 77;
    STATUS(function(all, 3, 0, NULL));
}

int main(int argc, char **argv) {
    start();
    for (int n = 0; n < gpu_count; n++)
        device[n] = allocate(gpus[n], HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED);
    device2 = allocate(gpu, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED);
    host = allocate(cpu, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED);
    host2 = allocate(cpu, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED);
    static const struct {
        const char *name;
        void (*run)(void);
    } all[] = {{"reuse", reuse}, {"destroyed", destroyed}, {"flight", flight}, {"crowd", crowd}, {"times", times}, {"shared", shared}, {"kinds", kinds}, {"unknown", unknown},
               {"rect", rect}, {"peers", peers}, {"profiling", profiling}, {"misused", misused},
               {"unfinished", unfinished}, {"control", control}, {"batch", batch}};
    for (int n = 1; n < argc; n++) {
        rounds = rounds ? rounds : atoi(argv[n]);
        for (size_t m = 0; m < sizeof all / sizeof *all; m++)
            if (!strcmp(argv[n], all[m].name))
                all[m].run();
    }
    CHECK(hsa_shut_down());
}
