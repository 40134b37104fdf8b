// Modules that the program loads with the driver's functions: from a file and from memory; a cubin, a fat binary, PTX
// that the driver compiles. Unloaded before the end of the program, or not.
//
// VARIANTS: plain+preload plain+inject plain+archive plain+ptx
// REQUIRES: cupti || !ptx
// RUN: %{module} module.cu -c -o out/module.cubin
// RUN: %{module} module.cu -S -o out/module.ptx
// RUN: fatbinary -64 --create=out/module.fatbin --image3=kind=elf,sm=%{sm},file=out/module.cubin --image3=kind=ptx,sm=%{sm},file=out/module.ptx
// GPU: %if !ptx %{ export KINDS="cubin fatbin" %}
// GPU: %if ptx %{ export KINDS=ptx %}
// GPU: for kind in $KINDS; do for how in file data options unload-file unload-data unload-options; do LLVM_PROFILE_FILE=$kind-$how.profraw %a $PROGRAM/module.$kind $how; done; done
// GPU: %if !ptx %{ for how in fatbinary unload-fatbinary; do LLVM_PROFILE_FILE=fatbin-$how.profraw %a $PROGRAM/module.fatbin $how; done %}
//
// NO-PTX: sm_90.cubin-data.profraw: entry: [192, 120]
// NO-PTX: sm_90.cubin-file.profraw: entry: [192, 120]
// NO-PTX: sm_90.cubin-options.profraw: entry: [192, 120]
// NO-PTX: sm_90.cubin-unload-data.profraw: entry: [192, 120]
// NO-PTX: sm_90.cubin-unload-file.profraw: entry: [192, 120]
// NO-PTX: sm_90.cubin-unload-options.profraw: entry: [192, 120]
// NO-PTX: sm_90.fatbin-data.profraw: entry: [192, 120]
// NO-PTX: sm_90.fatbin-fatbinary.profraw: entry: [192, 120]
// NO-PTX: sm_90.fatbin-file.profraw: entry: [192, 120]
// NO-PTX: sm_90.fatbin-options.profraw: entry: [192, 120]
// NO-PTX: sm_90.fatbin-unload-data.profraw: entry: [192, 120]
// NO-PTX: sm_90.fatbin-unload-fatbinary.profraw: entry: [192, 120]
// NO-PTX: sm_90.fatbin-unload-file.profraw: entry: [192, 120]
// NO-PTX: sm_90.fatbin-unload-options.profraw: entry: [192, 120]
// PTX: sm_90.ptx-data.profraw: entry: [192, 120]
// PTX: sm_90.ptx-file.profraw: entry: [192, 120]
// PTX: sm_90.ptx-options.profraw: entry: [192, 120]
// PTX: sm_90.ptx-unload-data.profraw: entry: [192, 120]
// PTX: sm_90.ptx-unload-file.profraw: entry: [192, 120]
// PTX: sm_90.ptx-unload-options.profraw: entry: [192, 120]

//--- module.cu
extern "C" __global__ void entry(int *out) {
    if (threadIdx.x < 40)
        out[threadIdx.x] = 1;
}

//--- main.cpp
#include "check.h"
#include <fstream>
#include <sstream>
#include <string>
#include <string.h>

int main(int, char **argv) {
    std::string path = argv[1], how = argv[2];
    bool unload = how.rfind("unload-", 0) == 0;
    if (unload)
        how = how.substr(7);
    std::stringstream bytes;
    bytes << std::ifstream(path, std::ios::binary).rdbuf();
    // With the null byte after its end: PTX is a string.
    std::string image = bytes.str();
    EXPECT(!image.empty());
    int *out = device_ints(64);
    CUmodule module;
    CUfunction function;
    if (how == "file")
        CHECK(cuModuleLoad(&module, path.c_str()));
    else if (how == "data")
        CHECK(cuModuleLoadData(&module, image.c_str()));
    else if (how == "options")
        CHECK(cuModuleLoadDataEx(&module, image.c_str(), 0, nullptr, nullptr));
    else
        CHECK(cuModuleLoadFatBinary(&module, image.c_str()));
    CHECK(cuModuleGetFunction(&function, module, "entry"));
    void *arguments[] = {&out};
    CHECK(cuLaunchKernel(function, 3, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr));
    if (unload) {
        CHECK(cudaDeviceSynchronize());
        CHECK(cuModuleUnload(module));
    }
}
