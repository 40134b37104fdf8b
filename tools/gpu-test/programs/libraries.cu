// Libraries: code that the driver loads into a context when it is needed, by the driver's functions and by the runtime's.
//
// VARIANTS: plain+preload plain+inject plain+archive plain+ptx
// REQUIRES: cupti || !ptx
// RUN: %{module} module.cu -c -o out/module.cubin
// RUN: %{module} module.cu -S -o out/module.ptx
// RUN: fatbinary -64 --create=out/module.fatbin --image3=kind=elf,sm=%{sm},file=out/module.cubin --image3=kind=ptx,sm=%{sm},file=out/module.ptx
// GPU: %if !ptx %{ export KINDS="cubin fatbin" %}
// GPU: %if ptx %{ export KINDS=ptx %}
// GPU: for kind in $KINDS; do for how in file data unload-file unload-data runtime-file runtime-data unload-runtime-file unload-runtime-data; do LLVM_PROFILE_FILE=$kind-$how.profraw %a $PROGRAM/module.$kind $how; done; done
//
// NO-PTX: sm_90.cubin-data.profraw: entry: [192, 120]
// NO-PTX: sm_90.cubin-file.profraw: entry: [192, 120]
// NO-PTX: sm_90.cubin-runtime-data.profraw: entry: [192, 120]
// NO-PTX: sm_90.cubin-runtime-file.profraw: entry: [192, 120]
// NO-PTX: sm_90.cubin-unload-data.profraw: entry: [192, 120]
// NO-PTX: sm_90.cubin-unload-file.profraw: entry: [192, 120]
// NO-PTX: sm_90.cubin-unload-runtime-data.profraw: entry: [192, 120]
// NO-PTX: sm_90.cubin-unload-runtime-file.profraw: entry: [192, 120]
// NO-PTX: sm_90.fatbin-data.profraw: entry: [192, 120]
// NO-PTX: sm_90.fatbin-file.profraw: entry: [192, 120]
// NO-PTX: sm_90.fatbin-runtime-data.profraw: entry: [192, 120]
// NO-PTX: sm_90.fatbin-runtime-file.profraw: entry: [192, 120]
// NO-PTX: sm_90.fatbin-unload-data.profraw: entry: [192, 120]
// NO-PTX: sm_90.fatbin-unload-file.profraw: entry: [192, 120]
// NO-PTX: sm_90.fatbin-unload-runtime-data.profraw: entry: [192, 120]
// NO-PTX: sm_90.fatbin-unload-runtime-file.profraw: entry: [192, 120]
// PTX: sm_90.ptx-data.profraw: entry: [192, 120]
// PTX: sm_90.ptx-file.profraw: entry: [192, 120]
// PTX: sm_90.ptx-runtime-data.profraw: entry: [192, 120]
// PTX: sm_90.ptx-runtime-file.profraw: entry: [192, 120]
// PTX: sm_90.ptx-unload-data.profraw: entry: [192, 120]
// PTX: sm_90.ptx-unload-file.profraw: entry: [192, 120]
// PTX: sm_90.ptx-unload-runtime-data.profraw: entry: [192, 120]
// PTX: sm_90.ptx-unload-runtime-file.profraw: entry: [192, 120]

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

int main(int, char **argv) {
    std::string path = argv[1], how = argv[2];
    auto is = [&](const char *word) { return how.find(word) != std::string::npos; };
    std::stringstream bytes;
    bytes << std::ifstream(path, std::ios::binary).rdbuf();
    std::string image = bytes.str();
    EXPECT(!image.empty());
    int *out = device_ints(64);
    void *arguments[] = {&out};
    if (is("runtime")) {
        cudaLibrary_t library;
        cudaKernel_t kernel;
        if (is("file"))
            CHECK(cudaLibraryLoadFromFile(&library, path.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
        else
            CHECK(cudaLibraryLoadData(&library, image.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
        CHECK(cudaLibraryGetKernel(&kernel, library, "entry"));
        CHECK(cudaLaunchKernel((void *)kernel, dim3(3), dim3(64), arguments, 0, nullptr));
        CHECK(cudaDeviceSynchronize());
        if (is("unload"))
            CHECK(cudaLibraryUnload(library));
        return 0;
    }
    CUlibrary library;
    CUkernel kernel;
    if (is("file"))
        CHECK(cuLibraryLoadFromFile(&library, path.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    else
        CHECK(cuLibraryLoadData(&library, image.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
    CHECK(cuLibraryGetKernel(&kernel, library, "entry"));
    CHECK(cuLaunchKernel((CUfunction)kernel, 3, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr));
    CHECK(cudaDeviceSynchronize());
    if (is("unload"))
        CHECK(cuLibraryUnload(library));
}
