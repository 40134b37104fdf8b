// Many images in one process. Image n has the kernel kN, which 32 + n threads run, and of which n + 1 take the branch. The
// images stay loaded, or are unloaded.
//
// BUILD: objects main.cpp
// BUILD: linked a
// BUILD: many 256 module.cu
// VARIANTS: plain+preload plain+inject
// RUN: LLVM_PROFILE_FILE=one/p.profraw %a $PROGRAM 1
// RUN: LLVM_PROFILE_FILE=some/p.profraw %a $PROGRAM 64
// RUN: LLVM_PROFILE_FILE=many/p.profraw %a $PROGRAM 256
// RUN: LLVM_PROFILE_FILE=unloaded/p.profraw %a $PROGRAM 64 unload
// FILES: 1 one/sm_90*.p.profraw
// FILES: 64 some/sm_90*.p.profraw
// FILES: 256 many/sm_90*.p.profraw
// FILES: 64 unloaded/sm_90*.p.profraw
// COUNTS: one/sm_90.p.profraw k0: [32, 1]
// COUNTS: some/sm_90*.p.profraw k{n}: [{32 + n}, {1 + n}] for n < 64
// COUNTS: many/sm_90*.p.profraw k{n}: [{32 + n}, {1 + n}] for n < 256
// COUNTS: unloaded/sm_90*.p.profraw k{n}: [{32 + n}, {1 + n}] for n < 64

//--- module.cu
#define __global__ __attribute__((global))
#define NAME(n) k##n
#define KERNEL(n) NAME(n)
extern "C" __global__ void KERNEL(N)(int *out) {
    if (__nvvm_read_ptx_sreg_tid_x() <= N)
        out[0] = 1;
}

//--- main.cpp
#include "check.h"
#include <string>
#include <vector>

int main(int argc, char **argv) {
    int *out = device_ints(1);
    void *arguments[] = {&out};
    std::vector<CUmodule> modules(atoi(argv[2]));
    for (size_t n = 0; n < modules.size(); n++) {
        CUfunction function;
        CHECK(cuModuleLoad(&modules[n], (argv[1] + ("/" + std::to_string(n)) + ".cubin").c_str()));
        CHECK(cuModuleGetFunction(&function, modules[n], ("k" + std::to_string(n)).c_str()));
        CHECK(cuLaunchKernel(function, 1, 1, 1, 32 + n, 1, 1, 0, nullptr, arguments, nullptr));
    }
    CHECK(cudaDeviceSynchronize());
    if (argc > 3)
        for (CUmodule module : modules)
            CHECK(cuModuleUnload(module));
}
