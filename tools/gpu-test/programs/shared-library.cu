// Kernels in shared libraries, which are linked, or opened and closed by the program. After dlclose the counts are there,
// and also after the library was opened again.
//
// BUILD: library libfirst.so first.cu
// BUILD: library libsecond.so second.cu
// BUILD: objects main.cpp
// BUILD: linked a -Lout -lfirst -ldl '-Wl,-rpath,$ORIGIN'
// VARIANTS: preload inject
// RUN: LLVM_PROFILE_FILE=opened.profraw %a $PROGRAM/libsecond.so 3
// COUNTS: sm_90*.opened.profraw _Z5firstPi: [64]
// COUNTS: sm_90*.opened.profraw _Z6secondPi: [96, 12]
// The libraries' host code writes a profile each: LLVM's runtime is in both.
// HOST: none
// FILES: 1 opened.profraw

//--- first.cu
__global__ void first(int *out) { out[threadIdx.x] = 1; }
void launch_first(int *out) { first<<<1, 64>>>(out); }

//--- second.cu
__global__ void second(int *out) {
    if (threadIdx.x < 4)
        out[threadIdx.x] = 1;
}
extern "C" void launch_second(int *out) { second<<<1, 32>>>(out); }

//--- main.cpp
#include "check.h"
#include <dlfcn.h>

void launch_first(int *out);

int main(int, char **argv) {
    int *out = device_ints(64);
    launch_first(out);
    for (int n = 0; n < atoi(argv[2]); n++) {
        void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
        EXPECT(library);
        auto launch = (void (*)(int *))dlsym(library, "launch_second");
        EXPECT(launch);
        launch(out);
        CHECK(cudaDeviceSynchronize());
        EXPECT(dlclose(library) == 0);
    }
}
