// touch CODE_OBJECT: reads a counter at the host address that HSA returns for it.
#include "hsa.h"

int main(int argc, char **argv) {
    start();
    size_t size;
    void *bytes = read_file(argv[argc - 1], &size);
    hsa_executable_t code = load(bytes, size);
    uint64_t at = symbol_u64(code, "__profc_branch", HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS);
    hsa_amd_pointer_info_t info = {.size = sizeof info};
    CHECK(hsa_amd_pointer_info((void *)at, &info, NULL, NULL, NULL));
    volatile uint64_t *host = (void *)((char *)info.hostBaseAddress + (at - (uint64_t)info.agentBaseAddress));
    printf("the first counter is %lu\n", *host);
}
