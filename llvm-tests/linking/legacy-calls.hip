// Object files that were compiled for the profile runtime of an LLVM before 23 call functions that register variables
// and modules. Such object files link, the calls have no effect, whatever their arguments, and the counts are the same
// as without them.
//
// RUN: %hip_cxx %pgo %exact -O2 %s -o a %devprof_a && ./a
// RUN: %counts gfx1100.default.profraw | FileCheck %s
#include "check.h"

extern "C" {
void __llvm_profile_offload_register_shadow_variable(void *pointer);
void __llvm_profile_offload_register_section_shadow_variable(void *pointer);
void __llvm_profile_offload_register_dynamic_module(int load_result, void **module, const void *image);
void __llvm_profile_offload_unregister_dynamic_module(void *module);
}

__global__ void kernel(int *out) { out[threadIdx.x] = 1; }

static int shadow;

int main() {
    void *module = &shadow;
    __llvm_profile_offload_register_shadow_variable(&shadow);
    __llvm_profile_offload_register_section_shadow_variable(&shadow);
    __llvm_profile_offload_register_dynamic_module(0, &module, &shadow);
    __llvm_profile_offload_register_dynamic_module(1, nullptr, nullptr);
    kernel<<<1, 64>>>(device_ints(64));
    CHECK(hipDeviceSynchronize());
    __llvm_profile_offload_unregister_dynamic_module(module);
    __llvm_profile_offload_unregister_dynamic_module(nullptr);
    __llvm_profile_offload_register_shadow_variable(nullptr);
    __llvm_profile_offload_register_section_shadow_variable(nullptr);
}

// CHECK:     {{^}}_Z6kernelPi: [64]{{$}}
// CHECK-NOT: {{.}}
