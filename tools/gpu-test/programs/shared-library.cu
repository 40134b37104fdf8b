// Kernels in shared libraries, which are linked, or opened and closed by the program. After dlclose the counts are there,
// and also after the library was opened again.
//
// VARIANTS: preload inject
// RUN: %{cu} first.cu -fPIC -o first.o
// RUN: %{cxx} first.o -shared -o out/libfirst.so %{link}
// RUN: %{cu} second.cu -fPIC -o second.o
// RUN: %{cxx} second.o -shared -o out/libsecond.so %{link}
// RUN: %{cxx} -c main.cpp -o main.o
// RUN: %{cxx} main.o -o out/a %{link} -Lout -lfirst -ldl '-Wl,-rpath,$ORIGIN'
// GPU: LLVM_PROFILE_FILE=opened.profraw %a $PROGRAM/libsecond.so 3
//
// CHECK: opened.profraw: {{(no )?main}}
// CHECK: sm_90*.opened.profraw: _Z5firstPi: [64]
// CHECK: sm_90*.opened.profraw: _Z6secondPi: [96, 12]

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
