// Agents have the target IDs of real GPUs, and run code objects whose features match: SRAMECC is on, XNACK is off.
//
// REQUIRES: debian, gfx1100, sim
// RUN: %clang -O1 -Wall -I%inputs %s -o a -lhsa-runtime64
// RUN: echo '[[clang::amdgpu_kernel]] void kernel(void) {}' > kernel.c
// DEFINE: %{code} = clang-23 --target=amdgcn-amd-amdhsa -nogpulib kernel.c
// RUN: %{code} -mcpu=gfx942 -o 942 && %{code} -mcpu=gfx942 -o v4 -mcode-object-version=4
// RUN: %{code} -mcpu=gfx942:xnack- -o 942-x- && %{code} -mcpu=gfx942:xnack+ -o 942-x+
// RUN: %{code} -mcpu=gfx942:sramecc+ -o 942-s+ && %{code} -mcpu=gfx942:sramecc- -o 942-s-
// RUN: %{code} -mcpu=gfx942:sramecc+:xnack- -o 942-s+x- && %{code} -mcpu=gfx90a:xnack- -o 90a-x-
// RUN: %{code} -mcpu=gfx9-4-generic:xnack- -o g942-x- && %{code} -mcpu=gfx9-4-generic:xnack+ -o g942-x+
// RUN: %{code} -mcpu=gfx11-generic -o g11
// RUN: env HSA_SIM_AGENTS=gfx942,gfx90a,gfx1100 %on_sim ./a 942 v4 942-x- 942-x+ 942-s+ 942-s- 942-s+x- 90a-x- g942-x- g942-x+ g11 > out
// RUN: FileCheck %s < out
// CHECK:      {{^}}gfx942: amdgcn-amd-amdhsa--gfx942:sramecc+:xnack- amdgcn-amd-amdhsa--gfx9-4-generic:sramecc+:xnack-{{$}}
// CHECK-NEXT: {{^}}942: 0{{$}}
// CHECK-NEXT: {{^}}v4: 0{{$}}
// CHECK-NEXT: {{^}}942-x-: 0{{$}}
// CHECK-NEXT: {{^}}942-x+: 0x1017{{$}}
// CHECK-NEXT: {{^}}942-s+: 0{{$}}
// CHECK-NEXT: {{^}}942-s-: 0x1017{{$}}
// CHECK-NEXT: {{^}}942-s+x-: 0{{$}}
// CHECK-NEXT: {{^}}90a-x-: 0x1017{{$}}
// CHECK-NEXT: {{^}}g942-x-: 0{{$}}
// CHECK-NEXT: {{^}}g942-x+: 0x1017{{$}}
// CHECK-NEXT: {{^}}g11: 0x1017{{$}}
// CHECK-NEXT: {{^}}gfx90a: amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-{{$}}
// CHECK-COUNT-7: {{: 0x1017$}}
// CHECK-NEXT: {{^}}90a-x-: 0{{$}}
// CHECK-COUNT-3: {{: 0x1017$}}
// CHECK-NEXT: {{^}}gfx1100: amdgcn-amd-amdhsa--gfx1100 amdgcn-amd-amdhsa--gfx11-generic{{$}}
// CHECK-COUNT-10: {{: 0x1017$}}
// CHECK-NEXT: {{^}}g11: 0{{$}}
// CHECK-NEXT: {{^}}amdgcn-amd-amdhsa--gfx942:xnack+: on gfx942: 0, name of 33{{$}}
#include "hsa.h"

static hsa_status_t print_isa(hsa_isa_t isa, void *data) {
    uint32_t length;
    char name[64];
    CHECK(hsa_isa_get_info_alt(isa, HSA_ISA_INFO_NAME_LENGTH, &length));
    CHECK(hsa_isa_get_info_alt(isa, HSA_ISA_INFO_NAME, name));
    printf(" %.*s", (int)length, name);
    return HSA_STATUS_SUCCESS;
}

static void load_all(hsa_agent_t agent, char **files) {
    char name[64];
    CHECK(hsa_agent_get_info(agent, HSA_AGENT_INFO_NAME, name));
    printf("%s:", name);
    CHECK(hsa_agent_iterate_isas(agent, print_isa, NULL));
    puts("");
    for (char **file = files; *file; file++) {
        hsa_code_object_reader_t reader;
        hsa_executable_t executable;
        CHECK(hsa_code_object_reader_create_from_file(open(*file, O_RDONLY), &reader));
        CHECK(hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, NULL, &executable));
        printf("%s: %#x\n", *file, hsa_executable_load_agent_code_object(executable, agent, reader, NULL, NULL));
        CHECK(hsa_executable_destroy(executable));
        CHECK(hsa_code_object_reader_destroy(reader));
    }
}

int main(int count, char **words) {
    start();
    for (int n = 0; n < gpu_count; n++)
        load_all(gpus[n], words + 1);

    const char *name = "amdgcn-amd-amdhsa--gfx942:xnack+";
    hsa_isa_t code, agent;
    uint32_t length;
    bool compatible;
    CHECK(hsa_isa_from_name(name, &code));
    CHECK(hsa_agent_get_info(gpu, HSA_AGENT_INFO_ISA, &agent));
    CHECK(hsa_isa_compatible(code, agent, &compatible));
    CHECK(hsa_isa_get_info_alt(code, HSA_ISA_INFO_NAME_LENGTH, &length));
    printf("%s: on gfx942: %d, name of %u\n", name, compatible, length);
}
