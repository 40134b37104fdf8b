// Many images in one process. Image n has the kernel kN, which 32 + n threads run, and of which n + 1 take the branch. The
// images stay loaded, or are unloaded.
//
// VARIANTS: plain+preload plain+inject
// RUN: for n in {0..255}; do %{module} module.cu -nocudainc -nocudalib -DN=$n -c -o out/$n.cubin; done
// GPU: LLVM_PROFILE_FILE=one/p.profraw %a $PROGRAM 1
// GPU: LLVM_PROFILE_FILE=some/p.profraw %a $PROGRAM 64
// GPU: LLVM_PROFILE_FILE=many/p.profraw %a $PROGRAM 256
// GPU: LLVM_PROFILE_FILE=unloaded/p.profraw %a $PROGRAM 64 unload
//
// CHECK: many/sm_90*.p.profraw: 256 files
// CHECK: one/sm_90.p.profraw: k0: [32, 1]
// CHECK: some/sm_90*.p.profraw: 64 files
// CHECK: unloaded/sm_90*.p.profraw: 64 files
// AFTER: counts() { [ -z "$3" ] || echo "$1/%arch$3.p.profraw: $2 files"; for ((n = 0; n < $2; n++)); do echo "$1/%arch$3.p.profraw: k$n: [$((32 + n)), $((1 + n))]"; done; }
// AFTER: { counts many 256 '*'; counts one 1 ''; counts some 64 '*'; counts unloaded 64 '*'; } | sort >expected
// AFTER: sort results | diff expected -

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
