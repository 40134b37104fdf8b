// A small CUDA driver and CUPTI in one library, without a GPU: what devprof calls, and what makes the driver call devprof.
// "Device" memory is host memory. It tests devprof's own logic and its messages for errors; what a real driver does is
// tested by tools/gpu-test.
//
// It is as strict as the real one: a copy must be inside one variable or one allocation, and a function of the driver must not be called
// while the driver reports a change of an object, because the driver holds its locks then. Copies of counters must not be announced
// to a module of which a kernel has run: it may have read a part of the old announcement.
//
// Of a fat binary, it uses the image that a real driver uses for sm_90; it does not unpack compressed ones, but takes their
// content as it is. PTX becomes a module with the variables that devprof's instrumentation defines, in the lines that begin with
// `.weak .global`. Without a cubin for sm_90, it uses a fat binary's first PTX.
//
// FAKE_PTX=refuse: instrumented PTX is not accepted (error 218). FAKE_PTX=names: prints whether the PTX that is loaded or linked is
// instrumented.
// FAKE_OWNER=NAME: CUPTI has a subscriber of this name. FAKE_FAIL=FUNCTION:NUMBER: the function returns this error.
// FAKE_SLOW=N: a module is loaded N milliseconds before the call that loads it is over.
// FAKE_EAGER=1: libraries are loaded in all contexts at once, as with CUDA_MODULE_LOADING=EAGER.
// FAKE_WAIT=1: a module that is loaded in a context in which a kernel runs waits for it, as in a real driver. Otherwise that is an error.
// FAKE_UNITS=N: the number of multiprocessors of each device (default: 4). FAKE_CUPTI=13.0: CUPTI serves one subscriber.
// Otherwise it is a later one, in which subscribers can allow others. FAKE_OTHER=1: it has one that does.
// FAKE_REPORT=1: at the end of the process, prints how often it has waited.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ENTER, EXIT };
enum { DRIVER_API = 1, RESOURCE = 3 };
enum { CONTEXT_CREATED = 1, CONTEXT_DESTROY_STARTING, MODULE_LOADED = 6, MODULE_UNLOAD_STARTING };

struct variable {
    const char *name;
    uint64_t size;
    char *memory;
};
struct module {
    struct library *library; // null: loaded by cuModuleLoad
    struct context *context;
    uint32_t id;
    int has_run, users;
    size_t size, count;
    char *image, *memory;
    struct variable *variables;
    struct module *next;
};
struct library {
    char *image;
    size_t size;
    struct library *next;
};
struct context {
    int device, is_busy, is_destroyed;
    int error; // of a kernel that has failed
    uint32_t last_id; // CUPTI counts the modules of each context, so those of two contexts have the same numbers (H200, CUPTI 13.0)
    struct context *next;
    struct context *primary; // of a green context
};
struct callback_data {
    unsigned site;
    const char *name;
    const void *parameters;
    const int *result;
    const char *symbol;
    struct context *context;
    uint32_t context_id;
    uint64_t *data;
    uint32_t correlation;
};
struct resource_data {
    struct context *context;
    void *object;
    const void *more;
};
struct module_data {
    uint32_t id;
    size_t size;
    const char *image;
};
typedef void (*callback)(void *, unsigned, unsigned, const void *);

static callback subscriber;
static char enabled[4][1024];
struct allocation {
    struct context *context;
    uint64_t start, size;
    struct allocation *next;
};

// Removes an element from a list.
#define UNLINK(list, element)                  \
    do {                                       \
        __typeof__(element) *link = &(list);   \
        while (*link != (element))             \
            link = &(*link)->next;             \
        *link = (element)->next;               \
    } while (0)

static struct module *modules;
static struct library *libraries;
static struct context *contexts;
static struct allocation *allocations;
static _Thread_local struct context *current;
static int is_initialized;
static _Thread_local int is_reporting;

// The context that has the code and memory of the current one.
static struct context *used(void) { return current && current->primary ? current->primary : current; }

static int fails(const char *function) {
    const char *fail = getenv("FAKE_FAIL");
    size_t length = strlen(function);
    if (is_reporting) {
        fprintf(stderr, "fake driver: %s was called while the driver holds its locks\n", function);
        abort();
    }
    // A context in which a kernel has failed can only be pushed, popped and named.
    if (current && used()->error && strncmp(function, "cuCtxPush", 9) && strncmp(function, "cuCtxGet", 8) && strncmp(function, "cuDevice", 8))
        return used()->error;
    return fail && !strncmp(fail, function, length) && fail[length] == ':' ? atoi(fail + length + 1) : 0;
}
#define BEGIN                          \
    do {                               \
        int error = fails(__func__);   \
        if (error)                     \
            return error;              \
    } while (0)

static void resource(unsigned id, struct context *context, const void *more) {
    struct resource_data data = {context, NULL, more};
    if (!subscriber || !enabled[RESOURCE][id])
        return;
    is_reporting = 1;
    subscriber(NULL, RESOURCE, id, &data);
    is_reporting = 0;
}

// The call whose beginning is being reported. If it is switched off then, CUPTI 13.0 reports no beginning of any call any
// more.
static unsigned beginning;
static int is_broken, launch_reports;
static void call(unsigned id, unsigned site, const void *parameters, int result) {
    struct callback_data data = {.site = site, .parameters = parameters, .result = &result, .context = used()};
    if (!subscriber || !enabled[DRIVER_API][id] || site == ENTER && is_broken)
        return;
    launch_reports += id == 307;
    beginning = site == ENTER ? id : 0;
    subscriber(NULL, DRIVER_API, id, &data);
    beginning = 0;
}

static int end(unsigned id, const void *parameters, int result) {
    call(id, EXIT, parameters, result);
    return result;
}

int cuptiSubscribe_v2(uintptr_t *handle, callback function, void *user, struct {
    size_t size;
    const char *name;
    char *old;
    size_t old_size;
    char is_shared, padding[7];
} * parameters) {
    const char *owner = getenv("FAKE_OWNER"), *version = getenv("FAKE_CUPTI");
    int is_old = version && !strcmp(version, "13.0");
    if (parameters->size != sizeof *parameters && parameters->size != 32 || is_old && parameters->size != 32)
        return 1;
    if (!owner && getenv("FAKE_OTHER") && (parameters->size == 32 || !parameters->is_shared))
        owner = "a tool that allows others";
    if (owner) {
        snprintf(parameters->old, parameters->old_size, "%s", owner);
        return 39;
    }
    *handle = 1;
    subscriber = function;
    return 0;
}
int cuptiSubscribe(uintptr_t *handle, callback function, void *user) { return 1; }
int cuptiUnsubscribe(uintptr_t handle) { return 0; }
int cuptiEnableCallback(uint32_t enable, uintptr_t handle, unsigned domain, unsigned id) {
    if (!enable && domain == DRIVER_API && id == beginning)
        is_broken = 1;
    enabled[domain][id] = enable;
    return 0;
}

int cuInit(unsigned flags) {
    const char *path = getenv("CUDA_INJECTION64_PATH");
    void *library = path && !is_initialized ? dlopen(path, RTLD_NOW) : NULL;
    // A real driver ignores a library that does not exist.
    if (library) {
        int (*start)(void) = dlsym(library, "InitializeInjection");
        if (!start || start() != 1)
            return 999;
    }
    is_initialized = 1;
    return 0;
}
int cuDeviceGetCount(int *count) {
    *count = 2;
    return is_initialized ? 0 : 3;
}
static int is_eager(void) { return getenv("FAKE_EAGER") != NULL; }
static struct module *load(char *image, size_t size, struct library *library);
static void load_in(struct library *library, struct context *context) {
    struct context *old = current;
    current = context;
    load(library->image, library->size, library);
    current = old;
}
static struct context *create(int device) {
    struct context *context = calloc(1, sizeof *context);
    context->device = device;
    context->next = contexts;
    contexts = context;
    resource(CONTEXT_CREATED, context, NULL);
    for (struct library *library = libraries; library && is_eager(); library = library->next)
        load_in(library, context);
    return context;
}
int cuCtxCreate(struct context **context, int device) {
    call(10, ENTER, &context, 0);
    *context = create(device);
    return end(10, &context, 0);
}
// A context of a function that CUPTI does not report.
void fake_context(struct context **context, int device) { *context = create(device); }
int cuCtxGetCurrent(struct context **context) {
    BEGIN;
    *context = current;
    return 0;
}
// A reset of a primary context does not change the number of its users.
static struct context *primaries[2];
static int users[2];
int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active) {
    BEGIN;
    *flags = 0;
    *active = primaries[device] != NULL;
    return 0;
}
int cuDevicePrimaryCtxRetain(struct context **context, int device) {
    struct {
        struct context **context;
        int device;
    } parameters = {context, device};
    BEGIN;
    call(386, ENTER, &parameters, 0);
    if (!primaries[device])
        primaries[device] = create(device);
    users[device]++;
    *context = primaries[device];
    return end(386, &parameters, 0);
}
static int units(void) {
    const char *number = getenv("FAKE_UNITS");
    return number ? atoi(number) : 4;
}
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    BEGIN;
    *value = attribute == 16 ? units() : attribute == 75 ? 9 : 0;
    return attribute == 16 || attribute == 75 || attribute == 76 ? 0 : 1;
}
int cuCtxSetCurrent(struct context *context) {
    current = context;
    return 0;
}
static _Thread_local struct context *stack[16];
static _Thread_local int depth;
int cuCtxPushCurrent_v2(struct context *context) {
    BEGIN;
    if (context->is_destroyed || context->primary) {
        // A real driver uses freed memory, or there is a race: a green context may be current to one thread only.
        fprintf(stderr, "%s: the context %s\n", __func__, context->is_destroyed ? "was destroyed" : "is a green one");
        abort();
    }
    stack[depth++] = current;
    current = context;
    return 0;
}
int cuCtxPopCurrent_v2(struct context **context) {
    *context = current;
    current = stack[--depth];
    return 0;
}
int cuCtxGetDevice(int *device) {
    BEGIN;
    *device = current->device;
    return 0;
}
// Waits until a thread waits for such a kernel, to load a module.
static volatile int is_waiting;
void fake_await(void) {
    while (!is_waiting)
        usleep(1000);
}
// From now on, a kernel runs in the current context that never ends.
void fake_busy(void) { current->is_busy = 1; }
// A kernel of the current context fails.
void fake_error(int error) { used()->error = error; }

// The streams that are captured. The capture fails if somebody waits for the context.
static struct capture {
    uintptr_t stream;
    struct context *context;
    int is_broken;
} captures[8];
static struct capture *capture_of(uintptr_t stream) {
    for (int n = 0; n < 8; n++)
        if (captures[n].context && captures[n].stream == stream)
            return &captures[n];
    return NULL;
}

static int waits, synchronizations;
static volatile int copies_are_stuck;
static struct context *volatile running, *volatile occupied;
// A kernel runs in the current context (1), occupies the multiprocessors for kernels of the current context (2), or copies do not
// end (3), until all go on (0).
void fake_run(int how) {
    running = how == 1 ? used() : NULL;
    occupied = how == 2 ? used() : NULL;
    copies_are_stuck = how == 3;
}
int cuCtxSynchronize(void) {
    struct context *context = used();
    BEGIN;
    __atomic_fetch_add(&synchronizations, 1, __ATOMIC_SEQ_CST);
    for (int n = 0; n < 8; n++)
        if (captures[n].context == context) {
            captures[n].is_broken = 1;
            return 900;
        }
    while (running == context || context->is_busy)
        usleep(1000);
    return 0;
}
static uintptr_t last_stream = 6;
int cuStreamCreate(uintptr_t *stream, unsigned flags) {
    BEGIN;
    *stream = __atomic_add_fetch(&last_stream, 1, __ATOMIC_SEQ_CST);
    return flags == 1 ? 0 : 1;
}
static int is_stream(uintptr_t stream) { return stream >= 7 && stream <= last_stream; }

// What was begun on the streams of a context. It happens when somebody waits for it, as on a busy GPU.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct operation {
    uintptr_t stream;
    struct context *context;
    char *to;
    const char *from; // null: a fill
    unsigned char value;
    size_t size;
    int is_free; // frees `to`
    struct operation *next;
} *operations;

static void release(uint64_t address);
static void begin(struct operation operation) {
    pthread_mutex_lock(&lock);
    struct operation **last = &operations;
    while (*last)
        last = &(*last)->next;
    *last = malloc(sizeof operation);
    **last = operation;
    (*last)->context = used();
    pthread_mutex_unlock(&lock);
}
// Completes what can be completed on a stream, or on all streams of the context (0). Returns whether something is left. A fill is a
// kernel. Copies do not wait for kernels of other streams.
static int complete(uintptr_t stream) {
    int any = 0, is_left = 0;
    pthread_mutex_lock(&lock);
    for (struct operation **link = &operations, *one; (one = *link);) {
        int is_fill = !one->from && !one->is_free;
        if (one->context != used() || stream && one->stream != stream) {
            link = &one->next;
            continue;
        }
        if (stream && is_left || is_fill && one->context == occupied || one->from && copies_are_stuck) {
            is_left = 1;
            link = &one->next;
            continue;
        }
        if (one->is_free)
            release((uint64_t)one->to);
        else if (one->from)
            memcpy(one->to, one->from, one->size);
        else
            memset(one->to, one->value, one->size);
        any |= !one->is_free;
        *link = one->next;
        free(one);
    }
    waits += any;
    pthread_mutex_unlock(&lock);
    return is_left;
}
// Prints how often something was waited for, and starts at 0 again.
void fake_waits(void) {
    printf("waits: %d\n", waits);
    waits = 0;
}
// The same for waits for contexts.
void fake_synchronizations(void) {
    printf("synchronizations: %d\n", synchronizations);
    synchronizations = 0;
}
__attribute__((destructor)) static void report(void) {
    if (getenv("FAKE_REPORT"))
        fake_waits(), fake_synchronizations();
}
int cuStreamQuery(uintptr_t stream) {
    BEGIN;
    return complete(stream) ? 600 : 0;
}
int cuStreamSynchronize(uintptr_t stream) {
    BEGIN;
    while (complete(stream))
        usleep(1000);
    return 0;
}
int cuThreadExchangeStreamCaptureMode(int *mode) {
    static int old;
    int new = *mode;
    *mode = old;
    old = new;
    return 0;
}

// FAKE_FREE: the free memory, bytes.
int cuMemGetInfo_v2(size_t *free, size_t *size) {
    BEGIN;
    const char *number = getenv("FAKE_FREE");
    *size = 64ul << 30;
    *free = number ? strtoul(number, NULL, 0) : *size;
    return 0;
}
int cuMemAlloc_v2(uint64_t *address, size_t size) {
    BEGIN;
    struct allocation *allocation = malloc(sizeof *allocation);
    *allocation = (struct allocation){used(), (uint64_t)aligned_alloc(256, (size + 255) / 256 * 256), size, allocations};
    // As on a GPU, fresh memory has any content.
    memset((void *)allocation->start, 0xee, size);
    allocations = allocation;
    *address = allocation->start;
    return 0;
}
static void release(uint64_t address) {
    struct allocation *found = allocations;
    while (found->start != address || found->context != used())
        found = found->next;
    UNLINK(allocations, found);
    free((void *)address);
    free(found);
}
// Waits for the context's kernels.
int cuMemFree_v2(uint64_t address) {
    BEGIN;
    while (complete(0) || running == used())
        usleep(1000);
    release(address);
    return 0;
}
int cuMemFreeAsync(uint64_t address, uintptr_t stream) {
    BEGIN;
    if (!is_stream(stream))
        return 1;
    begin((struct operation){.stream = stream, .to = (char *)address, .is_free = 1});
    complete(stream);
    return 0;
}
// Prints the bytes that are allocated.
void fake_allocated(void) {
    uint64_t size = 0;
    for (struct allocation *allocation = allocations; allocation; allocation = allocation->next)
        size += allocation->size;
    printf("allocated: %llu\n", (unsigned long long)size);
}

static int is_memory(uint64_t address, size_t size) {
    for (struct allocation *allocation = allocations; allocation; allocation = allocation->next)
        if (allocation->context == used() && address >= allocation->start &&
            address + size <= allocation->start + allocation->size)
            return 1;
    for (struct module *module = modules; module; module = module->next)
        for (size_t n = 0; n < module->count; n++) {
            struct variable *variable = &module->variables[n];
            uint64_t start = (uint64_t)variable->memory;
            if (module->context == used() && address >= start && address + size <= start + variable->size)
                return 1;
        }
    return 0;
}
static int is_announced_late(uint64_t to) {
    for (struct module *module = modules; module; module = module->next)
        for (size_t n = 0; n < module->count; n++)
            if (module->has_run && (uint64_t)module->variables[n].memory == to &&
                !strcmp(module->variables[n].name, "__devprof_counter_copies"))
                return 1;
    return 0;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t size, uintptr_t stream) {
    BEGIN;
    if (is_announced_late(to)) {
        fprintf(stderr, "fake driver: copies are announced to a module of which a kernel has run\n");
        abort();
    }
    if (!is_stream(stream) || !is_memory(to, size))
        return 1;
    begin((struct operation){.stream = stream, .to = (char *)to, .from = from, .size = size});
    return 0;
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size, uintptr_t stream) {
    BEGIN;
    if (!is_stream(stream) || !is_memory(from, size))
        return 1;
    begin((struct operation){.stream = stream, .to = to, .from = (char *)from, .size = size});
    // The memory is not pinned, so the function returns when the copy is complete.
    while (copies_are_stuck || occupied == used() && complete(stream))
        usleep(1000);
    return 0;
}
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t size, uintptr_t stream) {
    BEGIN;
    if (!is_stream(stream) || !is_memory(to, size))
        return 1;
    begin((struct operation){.stream = stream, .to = (char *)to, .value = value, .size = size});
    return 0;
}

static char *read_file(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    char *bytes = calloc(1, (1 << 20) + 1);
    *size = file ? fread(bytes, 1, 1 << 20, file) : 0;
    if (file)
        fclose(file);
    return bytes;
}

static int is_cubin(const char *image) { return !memcmp(image, "\177ELF", 4); }

struct fat_binary {
    uint32_t magic;
    uint16_t version, header;
    uint64_t size;
};
struct entry {
    uint16_t kind, version;
    uint32_t header;
    uint64_t size;
    uint32_t other[3], arch, more[2];
    uint64_t flags;
};

// The image that the driver uses, and its size.
static char *choose(const char *code, size_t *size) {
    const uint32_t *words = (const void *)code;
    const struct entry *best = NULL;
    if (words[0] == 0x466243b1)
        code = *(const char *const *)(code + 8);
    const struct fat_binary *fat = (const void *)code;
    if (fat->magic == 0xba55ed50) {
        const char *end = code + fat->header + fat->size;
        for (const char *next = code + fat->header; next < end;) {
            const struct entry *entry = (const void *)next;
            if (entry->size > end - next)
                break;
            if (entry->kind == 2 && entry->arch / 10 == 9 && entry->arch <= 90 && (!best || entry->arch > best->arch))
                best = entry;
            next += entry->header + entry->size;
        }
        for (const char *next = code + fat->header; !best && next < end;) {
            const struct entry *entry = (const void *)next;
            if (entry->size > end - next)
                break;
            if (entry->kind == 1)
                best = entry;
            next += entry->header + entry->size;
        }
        code = best ? (const char *)best + best->header : "";
    }
    if (is_cubin(code)) {
        const Elf64_Ehdr *header = (void *)code;
        const Elf64_Shdr *sections = (void *)(code + header->e_shoff);
        *size = header->e_shoff + header->e_shnum * sizeof *sections;
        // As the real driver, the complete file: the program headers are its end.
        if (header->e_phnum && header->e_phoff + header->e_phnum * sizeof(Elf64_Phdr) > *size)
            *size = header->e_phoff + header->e_phnum * sizeof(Elf64_Phdr);
        for (int n = 0; n < header->e_shnum; n++)
            if (sections[n].sh_type != SHT_NOBITS && sections[n].sh_offset + sections[n].sh_size > *size)
                *size = sections[n].sh_offset + sections[n].sh_size;
    } else
        *size = strlen(code) + 1;
    char *copy = malloc(*size);
    return memcpy(copy, code, *size);
}

// The variables of instrumented PTX: `.weak .global .align N .TYPE NAME[COUNT] = {BYTE, …`.
static void add_variables(struct module *module, const char *text) {
    static const char start[] = "\n.weak .global .align ";
    module->variables = calloc(strlen(text) / sizeof start + 1, sizeof *module->variables);
    char *next = module->memory = aligned_alloc(256, 1 << 20);
    for (const char *line = text; (line = strstr(line, start)); line++) {
        int align, count, value;
        char type[8], *name = calloc(1, 512);
        if (sscanf(line + sizeof start - 1, "%d .%7s %511[^[][%d] = {%d", &align, type, name, &count, &value) != 5)
            abort();
        struct variable *variable = &module->variables[module->count++];
        variable->name = name;
        variable->size = count * (strcmp(type, "b8") ? 8 : 1);
        variable->memory = next;
        next += (variable->size + 255) / 256 * 256;
        memset(variable->memory, strcmp(type, "b8") ? 0 : value, variable->size);
    }
}

// Whether the driver accepts PTX.
static int is_accepted(const char *text) {
    const char *mode = getenv("FAKE_PTX");
    int is_instrumented = strstr(text, "__profd_") != NULL;
    if (!mode || is_cubin(text) || !strstr(text, ".version"))
        return 1;
    if (!strcmp(mode, "names"))
        printf("PTX: %s\n", is_instrumented ? "instrumented" : "plain"), fflush(stdout);
    return strcmp(mode, "refuse") || !is_instrumented;
}

static struct module *load(char *image, size_t size, struct library *library) {
    while (current->is_busy && getenv("FAKE_WAIT")) {
        is_waiting = 1;
        pause();
    }
    if (current->is_busy) {
        fprintf(stderr, "fake driver: the module cannot be loaded while a kernel runs\n");
        abort(); // A real driver waits for the kernel.
    }
    struct module *module = calloc(1, sizeof *module);
    const Elf64_Ehdr *header = (void *)image;
    const Elf64_Shdr *sections = (void *)(image + (is_cubin(image) ? header->e_shoff : 0));
    *module = (struct module){.library = library, .context = used(), .id = ++used()->last_id, .image = image, .size = size};
    if (!is_cubin(image) && strstr(image, "__profd_"))
        add_variables(module, image);
    for (int n = 0; is_cubin(image) && n < header->e_shnum; n++) {
        if (sections[n].sh_type != SHT_SYMTAB)
            continue;
        const Elf64_Sym *symbols = (void *)(image + sections[n].sh_offset);
        size_t count = sections[n].sh_size / sizeof *symbols;
        module->variables = calloc(count, sizeof *module->variables);
        // Each variable begins at a multiple of 256 bytes.
        size_t total = 0;
        for (size_t k = 0; k < count; k++)
            total += (symbols[k].st_size + 255) / 256 * 256;
        char *next = module->memory = aligned_alloc(256, total);
        for (size_t k = 0; k < count; k++) {
            if (ELF64_ST_TYPE(symbols[k].st_info) != STT_OBJECT || ELF64_ST_BIND(symbols[k].st_info) == STB_LOCAL)
                continue;
            const Elf64_Shdr *section = &sections[symbols[k].st_shndx];
            struct variable *variable = &module->variables[module->count++];
            variable->name = image + sections[sections[n].sh_link].sh_offset + symbols[k].st_name;
            variable->size = symbols[k].st_size;
            variable->memory = next;
            next += (variable->size + 255) / 256 * 256;
            memset(variable->memory, 0, variable->size);
            if (section->sh_type != SHT_NOBITS)
                memcpy(variable->memory, image + section->sh_offset + symbols[k].st_value, variable->size);
        }
    }
    struct module **end = &modules;
    while (*end)
        end = &(*end)->next;
    *end = module;
    struct module_data data = {module->id, size, image};
    resource(MODULE_LOADED, module->context, &data);
    if (getenv("FAKE_SLOW"))
        usleep(1000 * atoi(getenv("FAKE_SLOW")));
    return module;
}
static void unload(struct module *module) {
    struct module_data data = {module->id, module->size, module->image};
    resource(MODULE_UNLOAD_STARTING, module->context, &data);
    UNLINK(modules, module);
    free(module->memory);
    free(module->variables);
    free(module);
}
// Unloads the modules of a library or a context.
static void unload_all(struct library *library, struct context *context) {
    for (struct module *module = modules, *next; module; module = next) {
        next = module->next;
        if (library && module->library == library || context && module->context == context)
            unload(module);
    }
}

// The arguments of functions, as far as devprof reads them.
struct load_parameters {
    void *handle;
    const void *code;
};

static int load_module(unsigned id, struct module **module, const void *code, const char *bytes) {
    struct load_parameters parameters = {module, code};
    size_t size;
    call(id, ENTER, &parameters, 0);
    char *image = choose(bytes, &size);
    if (!is_accepted(image))
        return end(id, &parameters, 218);
    *module = load(image, size, NULL);
    return end(id, &parameters, 0);
}
int cuModuleLoad(struct module **module, const char *path) {
    size_t size;
    BEGIN;
    return load_module(18, module, path, read_file(path, &size));
}
int cuModuleLoadData(struct module **module, const void *code) {
    BEGIN;
    return load_module(19, module, code, code);
}
// Each option's value is a size of a log, which becomes 0 if the code is accepted, and otherwise 1.
int cuModuleLoadDataEx(struct module **module, const void *code, unsigned count, void *options, uintptr_t *values) {
    BEGIN;
    int error = load_module(20, module, code, code);
    for (unsigned n = 0; n < count; n++) {
        if (values[n] != 100)
            abort();
        values[n] = error != 0;
    }
    return error;
}
int cuModuleLoadFatBinary(struct module **module, const void *code) {
    BEGIN;
    return load_module(21, module, code, code);
}
int cuLinkAddData_v2(void *state, int kind, const char *data, size_t size, const char *name, unsigned count, void *options, void *values) {
    BEGIN;
    return kind != 1 || !name || !size || strnlen(data, size) < size - 1 ? 1 : is_accepted(data) ? 0 : 218;
}
int cuLinkAddFile_v2(void *state, int kind, const char *path, unsigned count, void *options, void *values) {
    size_t size;
    BEGIN;
    return kind == 1 && is_accepted(read_file(path, &size)) ? 0 : 218;
}
// A thread that is about to unload a module and has called fake_slow waits, after the report of that call and where it asks for a
// variable of another module, until a thread calls fake_slow(NULL).
static _Thread_local struct module *unloading;
static volatile int is_held;
void fake_slow(void *module) { is_held = (unloading = module) != NULL; }
static void wait_if_slow(void) {
    is_waiting |= unloading != NULL;
    while (unloading && is_held)
        usleep(1000);
}
int cuModuleUnload(struct module *module) {
    call(22, ENTER, &module, 0);
    wait_if_slow();
    if (module->users) {
        fprintf(stderr, "fake driver: the module is unloaded while another thread uses it\n");
        abort(); // The other thread of a real driver crashes.
    }
    unload(module);
    return end(22, &module, 0);
}
int cuModuleGetGlobal_v2(uint64_t *address, size_t *size, struct module *module, const char *name) {
    BEGIN;
    if (module != unloading) {
        module->users++;
        wait_if_slow();
        module->users--;
    }
    for (size_t n = 0; n < module->count; n++)
        if (!strcmp(module->variables[n].name, name)) {
            *address = (uint64_t)module->variables[n].memory;
            *size = module->variables[n].size;
            return 0;
        }
    return 500;
}
static struct library *add(char *image, size_t size) {
    struct library *library = malloc(sizeof *library);
    *library = (struct library){image, size, libraries};
    libraries = library;
    for (struct context *context = contexts; context && is_eager(); context = context->next)
        load_in(library, context);
    return library;
}
static int load_library(unsigned id, struct library **library, const void *code, const char *bytes, unsigned count) {
    struct load_parameters parameters = {library, code};
    size_t size;
    // The last argument is on the stack.
    if (count)
        return 1;
    call(id, ENTER, &parameters, 0);
    char *image = choose(bytes, &size);
    if (!is_accepted(image))
        return end(id, &parameters, 218);
    *library = add(image, size);
    return end(id, &parameters, 0);
}
int cuLibraryLoadData(struct library **library, const void *code, void *options, void *values, unsigned count,
                      void *library_options, void *library_values, unsigned library_count) {
    BEGIN;
    return load_library(678, library, code, code, library_count);
}
int cuLibraryLoadFromFile(struct library **library, const char *path, void *options, void *values, unsigned count,
                          void *library_options, void *library_values, unsigned library_count) {
    size_t size;
    BEGIN;
    return load_library(679, library, path, read_file(path, &size), library_count);
}
int cuLibraryGetModule(struct module **found, struct library *library) {
    BEGIN;
    for (*found = modules; *found; *found = (*found)->next)
        if ((*found)->library == library && (*found)->context == used())
            return 0;
    *found = load(library->image, library->size, library);
    return 0;
}
int cuLibraryGetKernel(void **kernel, struct library *library, const char *name) {
    const Elf64_Ehdr *header = (void *)library->image;
    BEGIN;
    for (int n = 0; is_cubin(library->image) && n < header->e_shnum; n++) {
        const Elf64_Shdr *sections = (void *)(library->image + header->e_shoff);
        const Elf64_Sym *symbols = (void *)(library->image + sections[n].sh_offset);
        for (size_t k = 0; sections[n].sh_type == SHT_SYMTAB && k < sections[n].sh_size / sizeof *symbols; k++)
            if (symbols[k].st_other & 0x10 &&
                !strcmp(library->image + sections[sections[n].sh_link].sh_offset + symbols[k].st_name, name)) {
                *kernel = (void *)&symbols[k];
                return 0;
            }
    }
    return 500;
}
// Prints how many modules are loaded.
void fake_modules(void) {
    int count = 0;
    for (struct module *module = modules; module; module = module->next)
        count++;
    printf("modules: %d\n", count);
}
// Prints how many beginnings and ends of launches were reported.
void fake_launches(void) { printf("reports of launches: %d\n", launch_reports); }
// Unloads a module without a call that CUPTI reports.
void fake_unload(struct module *module) { unload(module); }
int cuLibraryUnload(struct library *library) {
    call(680, ENTER, &library, 0);
    UNLINK(libraries, library);
    unload_all(library, NULL);
    free(library);
    return end(680, &library, 0);
}
static void destroy(struct context *context) {
    resource(CONTEXT_DESTROY_STARTING, context, NULL);
    unload_all(NULL, context);
    for (struct allocation **link = &allocations, *found; (found = *link);)
        if (found->context == context) {
            *link = found->next;
            free((void *)found->start);
            free(found);
        } else
            link = &found->next;
    UNLINK(contexts, context);
    for (int n = 0; n < 8; n++)
        if (captures[n].context == context)
            captures[n].context = NULL;
    context->is_destroyed = 1;
}
int cuCtxDestroy_v2(struct context *context) {
    call(322, ENTER, &context, 0);
    destroy(context);
    return end(322, &context, 0);
}
int cuDevicePrimaryCtxReset_v2(int device) {
    call(545, ENTER, &device, 0);
    if (primaries[device])
        destroy(primaries[device]);
    primaries[device] = NULL;
    return end(545, &device, 0);
}
static void release_primary(int device) {
    if (--users[device] == 0 && primaries[device]) {
        destroy(primaries[device]);
        primaries[device] = NULL;
    }
}
int cuDevicePrimaryCtxRelease_v2(int device) {
    int error = users[device] == 0 ? 201 : 0;
    BEGIN;
    call(544, ENTER, &device, 0);
    if (!error)
        release_primary(device);
    return end(544, &device, error);
}

// Green contexts. They are reported as contexts; what is loaded in them is the primary context's.
int cuGreenCtxCreate(struct context **green, void *resources, int device, unsigned flags) {
    struct {
        struct context **green;
        void *resources;
        int device;
    } parameters = {green, resources, device};
    BEGIN;
    call(743, ENTER, &parameters, 0);
    if (!primaries[device])
        primaries[device] = create(device);
    users[device]++;
    *green = create(device);
    (*green)->primary = primaries[device];
    return end(743, &parameters, 0);
}
int cuCtxFromGreenCtx(struct context **context, struct context *green) {
    struct {
        struct context **context, *green;
    } parameters = {context, green};
    BEGIN;
    call(753, ENTER, &parameters, 0);
    *context = green;
    return end(753, &parameters, 0);
}
int cuGreenCtxDestroy(struct context *green) {
    BEGIN;
    call(744, ENTER, &green, 0);
    resource(CONTEXT_DESTROY_STARTING, green, NULL);
    green->is_destroyed = 1;
    release_primary(green->device);
    return end(744, &green, 0);
}

static int begin_capture(unsigned id, uintptr_t stream) {
    call(id, ENTER, &stream, 0);
    for (int n = 0; n < 8; n++)
        if (!captures[n].context) {
            captures[n] = (struct capture){stream, used()};
            break;
        }
    return end(id, &stream, 0);
}
int cuStreamBeginCapture_v2(uintptr_t stream, int mode) { return begin_capture(539, stream); }
int cuStreamBeginRecaptureToGraph(uintptr_t stream, int mode, void *graph, void *function, void *user) {
    return begin_capture(846, stream);
}
int cuStreamEndCapture(uintptr_t stream, void **graph) {
    struct capture *capture = capture_of(stream);
    int error = !capture || capture->is_broken ? 901 : 0;
    call(497, ENTER, &stream, 0);
    if (capture)
        capture->context = NULL;
    return end(497, &stream, error);
}
int cuStreamDestroy_v2(uintptr_t stream) {
    call(326, ENTER, &stream, 0);
    if (capture_of(stream))
        capture_of(stream)->context = NULL;
    return end(326, &stream, 0);
}

// A launch of a kernel of a library, whose module is loaded if necessary.
int cuLaunchKernel(struct library *library) {
    struct module *module;
    call(307, ENTER, NULL, 0);
    int error = cuLibraryGetModule(&module, library);
    if (!error)
        module->has_run = 1;
    return end(307, NULL, error);
}

// For each name, the newest version of the function. Linked with -Bsymbolic, so that these are the driver's own.
int cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags, int *status) {
#define FUNCTION(name, version) {#name, name##version}
    static const struct {
        const char *name;
        void *function;
    } all[] = {
        FUNCTION(cuInit, ), FUNCTION(cuGetProcAddress, _v2), FUNCTION(cuCtxCreate, ), FUNCTION(cuCtxDestroy, _v2),
        FUNCTION(cuCtxSetCurrent, ), FUNCTION(cuDevicePrimaryCtxRetain, ), FUNCTION(cuDevicePrimaryCtxRelease, _v2),
        FUNCTION(cuDevicePrimaryCtxReset, _v2), FUNCTION(cuModuleLoad, ), FUNCTION(cuModuleLoadData, ),
        FUNCTION(cuModuleLoadDataEx, ), FUNCTION(cuModuleLoadFatBinary, ), FUNCTION(cuModuleUnload, ),
        FUNCTION(cuLinkAddData, _v2), FUNCTION(cuLinkAddFile, _v2),
        FUNCTION(cuLibraryLoadData, ), FUNCTION(cuLibraryLoadFromFile, ), FUNCTION(cuLibraryGetModule, ),
        FUNCTION(cuLibraryUnload, ), FUNCTION(cuLaunchKernel, ), FUNCTION(cuStreamBeginCapture, _v2),
        FUNCTION(cuStreamEndCapture, ), FUNCTION(cuStreamDestroy, _v2), FUNCTION(cuStreamBeginRecaptureToGraph, ),
        FUNCTION(cuGreenCtxCreate, ), FUNCTION(cuGreenCtxDestroy, ), FUNCTION(cuCtxFromGreenCtx, ),
    };
    *function = NULL;
    for (size_t n = 0; n < sizeof all / sizeof *all; n++)
        if (!strcmp(all[n].name, symbol))
            *function = all[n].function;
    if (status)
        *status = *function ? 0 : 1;
    return *function ? 0 : 500;
}

// Reports an image, without reading it.
void fake_load(const char *path) {
    size_t size;
    char *image = read_file(path, &size);
    struct module_data data = {++used()->last_id, size, image};
    resource(MODULE_LOADED, used(), &data);
}

// What a kernel does: adds to counter `n` of a function in warps on all multiprocessors in turn. All are full, except for
// the last one. See src/device/device-rt/counting.h.
void fake_count(struct module *module, const char *function, int n, uint64_t count) {
    struct {
        uint64_t offset;
        uint32_t stride, full, mask, last;
    } *copies;
    char counters[256], uniform[256];
    uint64_t address, uniform_address;
    size_t size, copies_size;
    module->has_run = 1;
    snprintf(counters, sizeof counters, "__profc_%s", function);
    snprintf(uniform, sizeof uniform, "__llvm_prf_unifcnt_%s", function);
    if (cuModuleGetGlobal_v2(&address, &size, module, counters) || size <= 8 * n ||
        cuModuleGetGlobal_v2(&uniform_address, &size, module, uniform) ||
        cuModuleGetGlobal_v2((uint64_t *)&copies, &copies_size, module, "__devprof_counter_copies") ||
        copies_size != sizeof *copies)
        abort();
    for (uint32_t warp = 0; count > 0; warp++) {
        uint64_t lanes = count < 32 ? count : 32, unit = warp % units();
        uint64_t copy = (unit & copies->mask) < copies->last ? unit & copies->mask : copies->last;
        uint64_t to = address + 8 * n + copies->offset + copy * copies->stride;
        if (!is_memory(to + (lanes == 32 ? copies->full : 0), 8))
            abort();
        *(uint64_t *)(to + (lanes == 32 ? copies->full : 0)) += lanes;
        if (lanes == 32 && copies->full == 0)
            ((uint64_t *)uniform_address)[n] += lanes;
        count -= lanes;
    }
}

// Byte `n` of the variable PREFIXfunction, which a kernel writes.
static uint8_t *byte_of(struct module *module, const char *prefix, const char *function, int n) {
    char name[256];
    uint64_t address;
    size_t size;
    module->has_run = 1;
    snprintf(name, sizeof name, "%s%s", prefix, function);
    if (cuModuleGetGlobal_v2(&address, &size, module, name) || size <= n)
        abort();
    return (uint8_t *)(address + n);
}

// What a kernel with byte coverage does: clears the byte of block `n` of a function.
void fake_cover(struct module *module, const char *function, int n) {
    *byte_of(module, "__profc_", function, n) = 0;
}

// What a kernel with MC/DC does: sets bit `n` of the bitmap of a function, for a test vector.
void fake_decide(struct module *module, const char *function, int n) {
    *byte_of(module, "__profbm_", function, n / 8) |= 1 << n % 8;
}
