// What is a use of freed memory in ROCr ends the process on the simulator: an executable, symbol or code object that is used after
// it was destroyed, and a code object that is unloaded before a copy from it is complete.
//
// REQUIRES: gfx1100, sim
// RUN: %clang -O1 -Wall -I%inputs %s -o a -lhsa-runtime64
// RUN: sh -c 'for use in executable again symbol object copy none; do %on_sim "HSA_SIM_PLAN=copy-engine * block 60000" ./a %fixtures/counted.raw11.co $use; echo "status $?"; done' 2>&1 | grep -v Aborted | FileCheck %s
//
// CHECK-COUNT-4: {{^}}hsa-sim: the program uses 0x5151{{[0-9a-f]+}}, which was destroyed{{[[:space:]]}}status 134
// CHECK-NEXT:    {{^}}hsa-sim: a code object is unloaded before a copy of it is complete{{$}}
// CHECK-NEXT:    {{^}}status 134{{$}}
// CHECK-NEXT:    {{^}}status 0{{$}}
// CHECK-NOT:     {{.}}
#include "hsa.h"

static hsa_status_t keep(hsa_executable_t executable, hsa_loaded_code_object_t object, void *data) {
    (void)executable;
    *(hsa_loaded_code_object_t *)data = object;
    return HSA_STATUS_SUCCESS;
}

int main(int count, char **arguments) {
    (void)count;
    start();
    size_t size;
    void *bytes = read_file(arguments[1], &size);
    const char *use = arguments[2];
    hsa_executable_t executable = load(bytes, size);
    hsa_executable_symbol_t symbol;
    CHECK(hsa_executable_get_symbol_by_name(executable, "__profc_branch", &gpu, &symbol));
    uint64_t address, base;
    CHECK(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS, &address));
    hsa_ven_amd_loader_1_03_pfn_t loader;
    CHECK(hsa_system_get_major_extension_table(HSA_EXTENSION_AMD_LOADER, 1, sizeof loader, &loader));
    hsa_loaded_code_object_t object;
    CHECK(loader.hsa_ven_amd_loader_executable_iterate_loaded_code_objects(executable, keep, &object));
    if (!strcmp(use, "copy"))
        CHECK(hsa_amd_memory_async_copy(host_memory(4096), cpu, (void *)address, gpu, 8, 0, NULL, signal_of(1)));
    CHECK(hsa_executable_destroy(executable));
    uint32_t state;
    if (!strcmp(use, "executable"))
        hsa_executable_get_info(executable, HSA_EXECUTABLE_INFO_STATE, &state);
    else if (!strcmp(use, "again"))
        hsa_executable_destroy(executable);
    else if (!strcmp(use, "symbol"))
        hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS, &address);
    else if (!strcmp(use, "object"))
        loader.hsa_ven_amd_loader_loaded_code_object_get_info(object, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_BASE, &base);
}
