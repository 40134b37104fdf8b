// The functions of HIP that the programs of the semantics test use, on HSA: for targets that ROCr's model mode does not
// start. The programs are linked with this file instead of AMD's HIP.
//
// The code object comes from clang's offload bundle; AMD's code object manager reads the arguments' offsets from its
// metadata. Kernels and copies are synchronous, so streams are always empty.
#include <amd_comgr/amd_comgr.h>
#include <hip/hip_runtime_api.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

static void check(bool ok, const char *what) {
    if (!ok) {
        std::fprintf(stderr, "hip-on-hsa: %s failed\n", what);
        std::abort();
    }
}
#define HSA(call) check((call) == HSA_STATUS_SUCCESS, #call)
#define COMGR(call) check((call) == AMD_COMGR_STATUS_SUCCESS, #call)

namespace {
struct Argument {
    size_t offset, size;
    std::string kind;
};
struct Kernel {
    uint64_t object;
    uint32_t kernarg, group, scratch;
    std::vector<Argument> arguments;
};
struct Launch {
    dim3 grid, block;
    size_t shared;
    hipStream_t stream;
};

hsa_agent_t gpu, cpu;
hsa_amd_memory_pool_t device_pool, kernarg_pool;
hsa_queue_t *queue;
hsa_signal_t completion;
std::map<std::string, Kernel> kernels;
std::map<std::string, std::vector<Argument>> arguments;
std::vector<Launch> launches;
bool loaded;

// clang's constructors register kernels, maybe before the constructors of this file run.
struct Registered {
    std::map<const void *, std::string> names;
    std::vector<const char *> bundles;
};
Registered &registered() {
    static Registered list;
    return list;
}

std::string text(amd_comgr_metadata_node_t node) {
    size_t size = 0;
    COMGR(amd_comgr_get_metadata_string(node, &size, nullptr));
    std::string value(size, 0);
    COMGR(amd_comgr_get_metadata_string(node, &size, value.data()));
    value.resize(std::strlen(value.c_str()));
    return value;
}

std::string field(amd_comgr_metadata_node_t node, const char *key) {
    amd_comgr_metadata_node_t value;
    COMGR(amd_comgr_metadata_lookup(node, key, &value));
    return text(value);
}

void read_metadata(const char *object, size_t size) {
    amd_comgr_data_t data;
    COMGR(amd_comgr_create_data(AMD_COMGR_DATA_KIND_EXECUTABLE, &data));
    COMGR(amd_comgr_set_data(data, size, object));
    amd_comgr_metadata_node_t root, list;
    COMGR(amd_comgr_get_data_metadata(data, &root));
    COMGR(amd_comgr_metadata_lookup(root, "amdhsa.kernels", &list));
    size_t count;
    COMGR(amd_comgr_get_metadata_list_size(list, &count));
    for (size_t i = 0; i < count; ++i) {
        amd_comgr_metadata_node_t kernel, args;
        COMGR(amd_comgr_index_list_metadata(list, i, &kernel));
        auto &known = arguments[field(kernel, ".symbol")];
        if (amd_comgr_metadata_lookup(kernel, ".args", &args) != AMD_COMGR_STATUS_SUCCESS)
            continue;
        size_t number;
        COMGR(amd_comgr_get_metadata_list_size(args, &number));
        for (size_t j = 0; j < number; ++j) {
            amd_comgr_metadata_node_t argument;
            COMGR(amd_comgr_index_list_metadata(args, j, &argument));
            known.push_back({std::stoul(field(argument, ".offset")), std::stoul(field(argument, ".size")),
                             field(argument, ".value_kind")});
        }
    }
}

hsa_status_t find_agent(hsa_agent_t agent, void *) {
    hsa_device_type_t type;
    HSA(hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type));
    (type == HSA_DEVICE_TYPE_GPU ? gpu : cpu) = agent;
    return HSA_STATUS_SUCCESS;
}

hsa_status_t find_pool(hsa_amd_memory_pool_t pool, void *data) {
    hsa_amd_segment_t segment;
    uint32_t flags;
    HSA(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_SEGMENT, &segment));
    HSA(hsa_amd_memory_pool_get_info(pool, HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, &flags));
    bool kernarg = flags & HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT;
    if (segment == HSA_AMD_SEGMENT_GLOBAL && kernarg == (data == &kernarg_pool))
        *static_cast<hsa_amd_memory_pool_t *>(data) = pool;
    return HSA_STATUS_SUCCESS;
}

void *allocate(hsa_amd_memory_pool_t pool, size_t size) {
    void *memory = nullptr;
    HSA(hsa_amd_memory_pool_allocate(pool, size, 0, &memory));
    hsa_agent_t both[] = {cpu, gpu};
    HSA(hsa_amd_agents_allow_access(2, both, nullptr, memory));
    return memory;
}

// The entry of clang's bundle for the GPU.
std::pair<const char *, size_t> code_object(const char *bundle) {
    check(std::memcmp(bundle, "__CLANG_OFFLOAD_BUNDLE__", 24) == 0, "finding the offload bundle");
    auto number = [&](size_t at) {
        uint64_t value;
        std::memcpy(&value, bundle + at, 8);
        return value;
    };
    size_t at = 32;
    for (uint64_t i = 0; i < number(24); ++i) {
        uint64_t offset = number(at), size = number(at + 8), length = number(at + 16);
        std::string id(bundle + at + 24, length);
        if (id.rfind("hip", 0) == 0)
            return {bundle + offset, size};
        at += 24 + length;
    }
    check(false, "finding the GPU's code object");
    return {};
}

void load() {
    if (loaded)
        return;
    loaded = true;
    HSA(hsa_init());
    HSA(hsa_iterate_agents(find_agent, nullptr));
    HSA(hsa_amd_agent_iterate_memory_pools(gpu, find_pool, &device_pool));
    HSA(hsa_amd_agent_iterate_memory_pools(cpu, find_pool, &kernarg_pool));
    HSA(hsa_queue_create(gpu, 64, HSA_QUEUE_TYPE_MULTI, nullptr, nullptr, UINT32_MAX, UINT32_MAX, &queue));
    HSA(hsa_signal_create(0, 0, nullptr, &completion));
    for (const char *bundle : registered().bundles) {
        auto [object, size] = code_object(bundle);
        read_metadata(object, size);
        hsa_code_object_reader_t reader;
        hsa_executable_t executable;
        HSA(hsa_code_object_reader_create_from_memory(object, size, &reader));
        HSA(hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, nullptr, &executable));
        HSA(hsa_executable_load_agent_code_object(executable, gpu, reader, nullptr, nullptr));
        HSA(hsa_executable_freeze(executable, nullptr));
        for (auto &[symbol_name, known] : arguments) {
            hsa_executable_symbol_t symbol;
            if (hsa_executable_get_symbol_by_name(executable, symbol_name.c_str(), &gpu, &symbol) != HSA_STATUS_SUCCESS)
                continue;
            Kernel kernel{};
            auto get = [&](hsa_executable_symbol_info_t what, void *value) {
                HSA(hsa_executable_symbol_get_info(symbol, what, value));
            };
            get(HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &kernel.object);
            get(HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE, &kernel.kernarg);
            get(HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE, &kernel.group);
            get(HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE, &kernel.scratch);
            kernel.arguments = known;
            kernels[symbol_name.substr(0, symbol_name.size() - 3)] = kernel;
        }
    }
}

void dispatch(const Kernel &kernel, const Launch &launch, void **values) {
    auto *memory = static_cast<char *>(allocate(kernarg_pool, kernel.kernarg + 256));
    std::memset(memory, 0, kernel.kernarg);
    size_t next = 0;
    dim3 grid = launch.grid, block = launch.block;
    size_t hidden[] = {grid.x, grid.y, grid.z, block.x, block.y, block.z};
    const char *hidden_names[] = {"hidden_block_count_x", "hidden_block_count_y", "hidden_block_count_z",
                                  "hidden_group_size_x", "hidden_group_size_y", "hidden_group_size_z"};
    for (auto &argument : kernel.arguments) {
        char *to = memory + argument.offset;
        if (argument.kind.rfind("hidden_", 0) != 0) {
            std::memcpy(to, values[next++], argument.size);
            continue;
        }
        for (int i = 0; i < 6; ++i)
            if (argument.kind == hidden_names[i])
                std::memcpy(to, &hidden[i], argument.size);
        if (argument.kind == "hidden_grid_dims") {
            uint16_t dims = grid.z * block.z > 1 ? 3 : grid.y * block.y > 1 ? 2 : 1;
            std::memcpy(to, &dims, 2);
        }
        if (argument.kind == "hidden_dynamic_lds_size") {
            uint32_t size = launch.shared;
            std::memcpy(to, &size, 4);
        }
    }
    uint64_t index = hsa_queue_add_write_index_screlease(queue, 1);
    auto *packet = static_cast<hsa_kernel_dispatch_packet_t *>(queue->base_address) + index % queue->size;
    // The header stays invalid until the packet is complete.
    std::memset(&packet->setup, 0, sizeof *packet - sizeof packet->header);
    packet->setup = 3;
    packet->workgroup_size_x = block.x, packet->workgroup_size_y = block.y, packet->workgroup_size_z = block.z;
    packet->grid_size_x = grid.x * block.x, packet->grid_size_y = grid.y * block.y, packet->grid_size_z = grid.z * block.z;
    packet->private_segment_size = kernel.scratch > 8192 ? kernel.scratch : 8192;
    packet->group_segment_size = kernel.group + launch.shared;
    packet->kernel_object = kernel.object;
    packet->kernarg_address = memory;
    packet->completion_signal = completion;
    hsa_signal_store_screlease(completion, 1);
    uint16_t header = HSA_PACKET_TYPE_KERNEL_DISPATCH | HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
                      HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE;
    __atomic_store_n(&packet->header, header, __ATOMIC_RELEASE);
    hsa_signal_store_screlease(queue->doorbell_signal, index);
    hsa_signal_wait_scacquire(completion, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX, HSA_WAIT_STATE_BLOCKED);
    HSA(hsa_amd_memory_pool_free(memory));
}
} // namespace

extern "C" {
void **__hipRegisterFatBinary(const void *data) {
    struct Wrapper {
        uint32_t magic, version;
        const char *binary;
    };
    registered().bundles.push_back(static_cast<const Wrapper *>(data)->binary);
    return reinterpret_cast<void **>(1);
}
void __hipUnregisterFatBinary(void **) {}
void __hipRegisterFunction(void **, const void *host, char *, const char *name, unsigned, void *, void *, void *, void *,
                           int *) {
    registered().names[host] = name;
}
void __hipRegisterVar(void **, void *, char *, char *, int, size_t, int, int) {}
hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, size_t shared, hipStream_t stream) {
    launches.push_back({grid, block, shared, stream});
    return hipSuccess;
}
hipError_t __hipPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared, hipStream_t *stream) {
    *grid = launches.back().grid, *block = launches.back().block;
    *shared = launches.back().shared, *stream = launches.back().stream;
    launches.pop_back();
    return hipSuccess;
}
hipError_t hipLaunchKernel(const void *host, dim3 grid, dim3 block, void **values, size_t shared, hipStream_t stream) {
    load();
    const std::string &name = registered().names[host];
    auto found = kernels.find(name);
    check(found != kernels.end(), name.c_str());
    dispatch(found->second, {grid, block, shared, stream}, values);
    return hipSuccess;
}
hipError_t hipMalloc(void **memory, size_t size) {
    load();
    *memory = allocate(device_pool, size ? size : 1);
    return hipSuccess;
}
hipError_t hipMemcpy(void *to, const void *from, size_t size, hipMemcpyKind) {
    load();
    HSA(hsa_memory_copy(to, from, size));
    return hipSuccess;
}
hipError_t hipGetLastError() { return hipSuccess; }
const char *hipGetErrorString(hipError_t) { return "error"; }
hipError_t hipDeviceSetLimit(hipLimit_t, size_t) { return hipSuccess; }
}
