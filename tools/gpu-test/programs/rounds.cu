// A module is loaded, launched and unloaded a thousand times: round r has r launches of 2 threads, one of which takes
// the branch. Counts are exact, there is one profile, and memory does not grow: the copies of the counters are freed with
// their module, so their memory is used again.
//
// VARIANTS: plain+preload plain+archive
// UNEQUAL: *: it reads where the copies of the counters are
// RUN: %{module} module.cu -c -o out/module.cubin
// GPU: LLVM_PROFILE_FILE=module.profraw %a $PROGRAM/module.cubin module 1000
// GPU: LLVM_PROFILE_FILE=library.profraw %a $PROGRAM/module.cubin library 300
//
// CHECK: stdout: grown: no {{.*}}
// CHECK: stdout: copies: reused {{.*}}
// CHECK: stdout: grown: no {{.*}}
// CHECK: stdout: copies: reused {{.*}}
// CHECK: sm_90.library.profraw: entry: [90300, 45150]
// 1 + … + 1000 = 500,500 launches; 1 + … + 300 = 45,150.
// CHECK: sm_90.module.profraw: entry: [1001000, 500500]

//--- module.cu
extern "C" __global__ void entry(int *out) {
    int i = threadIdx.x;
    if (i < 1)
        out[i] = i;
}

//--- main.cpp
#include "check.h"
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <unistd.h>

static long resident() {
    long all, here = 0;
    std::ifstream("/proc/self/statm") >> all >> here;
    return here * sysconf(_SC_PAGESIZE);
}

int main(int, char **argv) {
    std::stringstream bytes;
    bytes << std::ifstream(argv[1], std::ios::binary).rdbuf();
    std::string image = bytes.str();
    bool library = argv[2] == std::string("library");
    int rounds = atoi(argv[3]);
    int *out = device_ints(2);
    void *arguments[] = {&out};
    long before = 0;
    std::set<uint64_t> copies;
    for (int round = 1; round <= rounds; round++) {
        if (round == rounds / 5)
            before = resident();
        CUmodule module;
        CUlibrary loaded;
        CUfunction function;
        if (library) {
            CHECK(cuLibraryLoadData(&loaded, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0));
            CUkernel kernel;
            CHECK(cuLibraryGetKernel(&kernel, loaded, "entry"));
            function = (CUfunction)kernel;
        } else {
            CHECK(cuModuleLoadData(&module, image.data()));
            CHECK(cuModuleGetFunction(&function, module, "entry"));
        }
        for (int launch = 0; launch < round; launch++)
            CHECK(cuLaunchKernel(function, 1, 1, 1, 2, 1, 1, 0, nullptr, arguments, nullptr));
        CHECK(cudaDeviceSynchronize());
        // The variable of the device runtime begins with the distance of the copies from the counters.
        CUdeviceptr variable;
        uint64_t distance;
        if (library)
            CHECK(cuLibraryGetGlobal(&variable, nullptr, loaded, "__devprof_counter_copies"));
        else
            CHECK(cuModuleGetGlobal(&variable, nullptr, module, "__devprof_counter_copies"));
        CHECK(cuMemcpyDtoH(&distance, variable, sizeof distance));
        copies.insert(distance);
        if (library)
            CHECK(cuLibraryUnload(loaded));
        else
            CHECK(cuModuleUnload(module));
    }
    long grown = resident() - before;
    // The driver's own objects need some memory.
    printf("grown: %s (%ld)\n", grown < (16 << 20) ? "no" : "yes", grown);
    printf("copies: %s (%zu)\n", copies.size() <= 20 ? "reused" : "at new addresses", copies.size());
}
