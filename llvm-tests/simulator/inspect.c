// REQUIRES: gfx1100, model, sim
// RUN: %clang -O1 -Wall -I%inputs %s -o a -lhsa-runtime64
// RUN: %on_rocr ./a %fixtures/counted.raw11.co > rocr
// RUN: %on_sim HSA_SIM_BAR=large ./a %fixtures/counted.raw11.co > sim
// RUN: diff -u rocr sim
// RUN: %on_rocr ./a %fixtures/counted.raw10.co > rocr
// RUN: %on_sim HSA_SIM_BAR=large ./a %fixtures/counted.raw10.co > sim
// RUN: diff -u rocr sim
// RUN: FileCheck %s < sim
//
// The simulator reports the same as ROCr about agents, pools, symbols, loaded code objects and the loader extension,
// and returns the same status for invalid calls. The GPU of ROCr's model mode has a large BAR.
//
// CHECK: name gfx1100
// CHECK: kernel branch.kd
// CHECK: variable __llvm_profile_sections of 56 bytes
// CHECK: during the iteration: 0 done
// CHECK: after it: 5 done
#include "hsa.h"
#include <pthread.h>

static uint64_t base;
static char lines[256][256];
static int count;

static hsa_status_t symbol(hsa_executable_t executable, hsa_agent_t agent, hsa_executable_symbol_t symbol, void *data) {
    (void)executable, (void)data;
    char name[200] = "";
    uint32_t length;
    hsa_symbol_kind_t kind;
    hsa_symbol_linkage_t linkage;
    hsa_agent_t of;
    bool definition;
    CHECK(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_NAME_LENGTH, &length));
    CHECK(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_NAME, name));
    CHECK(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_TYPE, &kind));
    CHECK(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_LINKAGE, &linkage));
    CHECK(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_AGENT, &of));
    CHECK(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_IS_DEFINITION, &definition));
    char *line = lines[count++];
    uint64_t address = 0;
    if (kind == HSA_SYMBOL_KIND_KERNEL) {
        uint32_t arguments, alignment, group, private;
        bool dynamic;
        CHECK(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &address));
        CHECK(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE, &arguments));
        CHECK(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_ALIGNMENT, &alignment));
        CHECK(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE, &group));
        CHECK(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE, &private));
        CHECK(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_DYNAMIC_CALLSTACK, &dynamic));
        snprintf(line, 256, "kernel %.*s at +%#lx, linkage %d, %s, arguments %u aligned %u, group %u, private %u, dynamic %d",
                 (int)length, name, address - base, linkage, of.handle == agent.handle ? "this agent" : "another agent",
                 arguments, alignment, group, private, dynamic);
    } else {
        uint32_t size;
        bool is_const;
        hsa_variable_allocation_t allocation;
        hsa_variable_segment_t segment;
        CHECK(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS, &address));
        CHECK(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SIZE, &size));
        CHECK(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_IS_CONST, &is_const));
        CHECK(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ALLOCATION, &allocation));
        CHECK(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SEGMENT, &segment));
        snprintf(line, 256, "variable %.*s of %u bytes at +%#lx, linkage %d, %s, const %d, allocation %d, segment %d, definition %d",
                 (int)length, name, size, address - base, linkage,
                 of.handle == agent.handle ? "this agent" : "another agent", is_const, allocation, segment, definition);
    }
    return HSA_STATUS_SUCCESS;
}

static int by_text(const void *a, const void *b) { return strcmp(a, b); }

static hsa_ven_amd_loader_1_03_pfn_t loader;

static hsa_status_t loaded(hsa_executable_t executable, hsa_loaded_code_object_t object, void *data) {
    (void)data;
    hsa_executable_t of;
    uint32_t kind = 0, storage = 0, length = 0;
    uint64_t at = 0, size = 0, memory = 0, memory_size = 0;
    int64_t delta = 0;
    char uri[4096] = "";
    CHECK(loader.hsa_ven_amd_loader_loaded_code_object_get_info(object, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_EXECUTABLE, &of));
    CHECK(loader.hsa_ven_amd_loader_loaded_code_object_get_info(object, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_KIND, &kind));
    CHECK(loader.hsa_ven_amd_loader_loaded_code_object_get_info(object, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_TYPE, &storage));
    CHECK(loader.hsa_ven_amd_loader_loaded_code_object_get_info(object, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_BASE, &at));
    CHECK(loader.hsa_ven_amd_loader_loaded_code_object_get_info(object, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_SIZE, &size));
    CHECK(loader.hsa_ven_amd_loader_loaded_code_object_get_info(object, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_DELTA, &delta));
    CHECK(loader.hsa_ven_amd_loader_loaded_code_object_get_info(object, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_URI_LENGTH, &length));
    CHECK(loader.hsa_ven_amd_loader_loaded_code_object_get_info(object, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_URI, uri));
    hsa_status_t has_memory = loader.hsa_ven_amd_loader_loaded_code_object_get_info(object, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_MEMORY_BASE, &memory);
    hsa_status_t has_size = loader.hsa_ven_amd_loader_loaded_code_object_get_info(object, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_CODE_OBJECT_STORAGE_MEMORY_SIZE, &memory_size);
    // The process id and the addresses differ between runs.
    char here[64], text[8192] = "";
    uri[length] = 0;
    snprintf(here, sizeof here, "memory://%d#offset=0x%lx&", getpid(), memory);
    const char *rest = strncmp(uri, here, strlen(here)) ? uri : uri + strlen(here);
    snprintf(text, sizeof text, "%s%s", rest == uri ? "" : "memory://HERE&", rest);
    printf("loaded: same executable %d, kind %u, storage %u (%#x %#x, %lu), size %lu, delta is base %d, uri %s\n",
           of.handle == executable.handle, kind, storage, has_memory, has_size, memory_size, size, (uint64_t)delta == at, text);
    base = at;
    return HSA_STATUS_SUCCESS;
}

static void segments(void) {
    size_t number = 0;
    CHECK(loader.hsa_ven_amd_loader_query_segment_descriptors(NULL, &number));
    hsa_ven_amd_loader_segment_descriptor_t all[16];
    printf("%zu segments\n", number);
    size_t wrong = number + 1;
    printf("an invalid number: %#x\n", loader.hsa_ven_amd_loader_query_segment_descriptors(all, &wrong));
    CHECK(loader.hsa_ven_amd_loader_query_segment_descriptors(all, &number));
    for (size_t n = 0; n < number; ++n) {
        hsa_executable_t executable;
        CHECK(loader.hsa_ven_amd_loader_query_executable(all[n].segment_base, &executable));
        printf("segment: agent %d, executable %d, storage %d of %zu bytes at %zu, %zu bytes at +%#lx\n",
               all[n].agent.handle == gpu.handle, executable.handle == all[n].executable.handle,
               all[n].code_object_storage_type, all[n].code_object_storage_size, all[n].code_object_storage_offset,
               all[n].segment_size, (uint64_t)all[n].segment_base - base);
    }
}

static hsa_status_t pool(hsa_amd_memory_pool_t pool, void *data) {
    hsa_amd_segment_t segment;
    uint32_t flags = 0;
    bool allowed, all;
    size_t granule, alignment;
    CHECK(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment));
    CHECK(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED, &allowed));
    CHECK(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_ACCESSIBLE_BY_ALL, &all));
    CHECK(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE, &granule));
    CHECK(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALIGNMENT, &alignment));
    if (segment == HSA_AMD_SEGMENT_GLOBAL)
        CHECK(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &flags));
    hsa_amd_memory_pool_access_t own, other;
    CHECK(hsa_amd_agent_memory_pool_get_info(gpu, pool, HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS, &own));
    CHECK(hsa_amd_agent_memory_pool_get_info(cpu, pool, HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS, &other));
    printf("%s pool: segment %d, flags %#x, allocation %d, by all %d, granule %zu, alignment %zu, gpu %d, cpu %d\n",
           (const char *)data, segment, flags, allowed, all, granule, alignment, own, other);
    return HSA_STATUS_SUCCESS;
}

static hsa_status_t isa(hsa_isa_t isa, void *data) {
    (void)data;
    uint32_t length;
    char name[128] = "";
    CHECK(hsa_isa_get_info_alt(isa, HSA_ISA_INFO_NAME_LENGTH, &length));
    CHECK(hsa_isa_get_info_alt(isa, HSA_ISA_INFO_NAME, name));
    printf("isa %s, length %u\n", name, length);
    return HSA_STATUS_SUCCESS;
}

static hsa_status_t executable_handle(hsa_executable_t executable, void *data) {
    (void)executable;
    ++*(int *)data;
    return HSA_STATUS_SUCCESS;
}

// What other threads do during an iteration.
static hsa_executable_t destroyed, frozen;
static void *queried;
static int done;

static void *destroy(void *unused) {
    CHECK(hsa_executable_destroy(destroyed));
    __atomic_add_fetch(&done, 1, __ATOMIC_RELEASE);
    return unused;
}

static void *freeze(void *unused) {
    CHECK(hsa_executable_freeze(frozen, NULL));
    __atomic_add_fetch(&done, 1, __ATOMIC_RELEASE);
    return unused;
}

static void *query_executable(void *unused) {
    hsa_executable_t found;
    CHECK(loader.hsa_ven_amd_loader_query_executable(queried, &found));
    __atomic_add_fetch(&done, 1, __ATOMIC_RELEASE);
    return unused;
}

static void *query_host_address(void *unused) {
    const void *found;
    CHECK(loader.hsa_ven_amd_loader_query_host_address(queried, &found));
    __atomic_add_fetch(&done, 1, __ATOMIC_RELEASE);
    return unused;
}

static void *create(void *unused) {
    hsa_executable_t created;
    CHECK(hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, NULL, &created));
    __atomic_add_fetch(&done, 1, __ATOMIC_RELEASE);
    return unused;
}

// hsa_ven_amd_loader_query_segment_descriptors waits, too, but in ROCr 7.2.4 it is not safe if others create executables.
enum { OTHERS = 5 };
static void *(*const others[OTHERS])(void *) = {destroy, freeze, query_executable, query_host_address, create};

// Called for the first executable.
static hsa_status_t start_others(hsa_executable_t executable, void *data) {
    (void)executable;
    for (int n = 0; n < OTHERS; n++)
        pthread_create((pthread_t *)data + n, NULL, others[n], NULL);
    usleep(100 * 1000);
    printf("during the iteration: %d done\n", __atomic_load_n(&done, __ATOMIC_ACQUIRE));
    return HSA_STATUS_INFO_BREAK;
}

int main(int argc, char **argv) {
    (void)argc;
    uint64_t ticks;
    STATUS(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP, &ticks));
    STATUS(hsa_shut_down());
    start();
    CHECK(hsa_init());
    CHECK(hsa_shut_down());

    char name[64];
    uint32_t number;
    uint16_t version;
    hsa_agent_feature_t feature;
    hsa_profile_t profile;
    bool supported;
    CHECK(hsa_agent_get_info(gpu, HSA_AGENT_INFO_NAME, name));
    CHECK(hsa_agent_get_info(gpu, HSA_AGENT_INFO_FEATURE, &feature));
    CHECK(hsa_agent_get_info(gpu, HSA_AGENT_INFO_PROFILE, &profile));
    printf("name %s, feature %d, profile %d\n", name, feature, profile);
    CHECK(hsa_agent_get_info(gpu, HSA_AGENT_INFO_VENDOR_NAME, name));
    CHECK(hsa_agent_get_info(gpu, HSA_AGENT_INFO_WAVEFRONT_SIZE, &number));
    printf("vendor %s, wavefront %u\n", name, number);
    CHECK(hsa_agent_get_info(gpu, HSA_AGENT_INFO_QUEUE_MAX_SIZE, &number));
    printf("largest queue %u\n", number);
    CHECK(hsa_agent_get_info(gpu, HSA_AGENT_INFO_WORKGROUP_MAX_SIZE, &number));
    printf("largest workgroup %u\n", number);
    CHECK(hsa_system_get_info(HSA_SYSTEM_INFO_VERSION_MAJOR, &version));
    printf("version %u\n", version);
    CHECK(hsa_system_get_info(HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY, &ticks));
    printf("frequency %lu\n", ticks);
    CHECK(hsa_system_major_extension_supported(HSA_EXTENSION_AMD_LOADER, 1, &version, &supported));
    printf("loader extension %d, minor %u\n", supported, version);
    CHECK(hsa_agent_iterate_isas(gpu, isa, NULL));
    CHECK(hsa_amd_agent_iterate_memory_pools(gpu, pool, "gpu"));
    CHECK(hsa_system_get_major_extension_table(HSA_EXTENSION_AMD_LOADER, 1, sizeof loader, &loader));

    size_t size;
    void *bytes = read_file(argv[1], &size);
    hsa_executable_t executable = load(bytes, size);
    CHECK(loader.hsa_ven_amd_loader_executable_iterate_loaded_code_objects(executable, loaded, NULL));
    segments();
    CHECK(hsa_executable_iterate_agent_symbols(executable, gpu, symbol, NULL));
    qsort(lines, count, sizeof lines[0], by_text);
    for (int n = 0; n < count; ++n)
        puts(lines[n]);
    int executables = 0;
    CHECK(loader.hsa_ven_amd_loader_iterate_executables(executable_handle, &executables));
    uint32_t state, valid;
    CHECK(hsa_executable_get_info(executable, HSA_EXECUTABLE_INFO_STATE, &state));
    CHECK(hsa_executable_validate(executable, &valid));
    printf("%d executables, state %u, validation %u\n", executables, state, valid);

    // From a file.
    int file = open(argv[1], O_RDONLY);
    hsa_code_object_reader_t reader;
    hsa_executable_t second;
    CHECK(hsa_code_object_reader_create_from_file(file, &reader));
    CHECK(hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, NULL, &second));
    CHECK(hsa_executable_load_agent_code_object(second, gpu, reader, NULL, NULL));
    CHECK(hsa_executable_freeze(second, NULL));
    CHECK(loader.hsa_ven_amd_loader_executable_iterate_loaded_code_objects(second, loaded, NULL));
    CHECK(hsa_code_object_reader_destroy(reader));

    // Invalid calls.
    hsa_executable_symbol_t found;
    hsa_signal_t none = {0};
    hsa_queue_t *queue;
    void *memory;
    STATUS(hsa_executable_freeze(executable, NULL));
    STATUS(hsa_executable_get_symbol_by_name(executable, "no_such_symbol", &gpu, &found));
    STATUS(hsa_signal_destroy(none));
    STATUS(hsa_queue_create(gpu, 100, HSA_QUEUE_TYPE_MULTI, NULL, NULL, 0, 0, &queue));
    STATUS(hsa_amd_memory_pool_allocate(pool_of(gpu, 0), 0, 0, &memory));
    STATUS(hsa_memory_copy(NULL, bytes, 4));
    STATUS(hsa_code_object_reader_create_from_memory(NULL, 4, &reader));
    CHECK(hsa_code_object_reader_create_from_memory("not a code object, but as long as an ELF header, so that ROCr reads it", 64, &reader));
    hsa_executable_t third;
    CHECK(hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, NULL, &third));
    STATUS(hsa_executable_load_agent_code_object(third, gpu, reader, NULL, NULL));
    pthread_t threads[OTHERS];
    destroyed = second;
    frozen = third;
    queried = (void *)symbol_u64(executable, "__profc_branch", HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS);
    STATUS(loader.hsa_ven_amd_loader_iterate_executables(start_others, threads));
    for (int n = 0; n < OTHERS; n++)
        pthread_join(threads[n], NULL);
    printf("after it: %d done\n", done);
    CHECK(hsa_executable_destroy(executable));
    executables = 0;
    CHECK(loader.hsa_ven_amd_loader_iterate_executables(executable_handle, &executables));
    printf("%d executables\n", executables);
    CHECK(hsa_shut_down());
    STATUS(hsa_shut_down());
}
