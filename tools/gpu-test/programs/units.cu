// Several translation units. With RDC they are linked to one image, and device functions of one are called from others.
// Static functions of the same name have their own counts. Without RDC each unit has an image and a profile.
//
// VARIANTS: O2 eager O0+rdc O2+rdc O2+lto archive+rdc
// RUN: %{cu} main.cu -o main.o
// RUN: %{cu} first.cu -Xclang -main-file-name -Xclang first -o first.o
// RUN: %{cu} second.cu -Xclang -main-file-name -Xclang second -o second.o
// RUN: %{cxx} main.o first.o second.o -o out/a %{link}
// All images are loaded when CUDA is initialized.
// GPU: %if eager %{ export CUDA_MODULE_LOADING=EAGER %}
// GPU: %a
//
// NO-RDC: sm_90*.default.profraw: 2 files
// NO-RDC: sm_90*.default.profraw: _Z5firstPi: [64]
// NO-RDC: sm_90*.default.profraw: _Z6secondPi: [32]
// NO-RDC: sm_90*.default.profraw: first:_ZL4samei: [64, 10]
// NO-RDC: sm_90*.default.profraw: second:_ZL4samei: [32, 22]
// RDC: sm_90.default.profraw: _Z5firstPi: [64]
// RDC: sm_90.default.profraw: _Z6secondPi: [32]
// The first unit calls the shared function for 10 … 63, the second one for 0 … 9.
// RDC: sm_90.default.profraw: _Z6sharedi: [64, 32]
// RDC: sm_90.default.profraw: first:_ZL4samei: [64, 10]
// RDC: sm_90.default.profraw: second:_ZL4samei: [32, 22]

//--- first.cu
#ifdef __CLANG_RDC__
__device__ int shared(int x) {
    if (x % 2)
        return 1;
    return 2;
}
#else
__device__ static inline __attribute__((no_profile_instrument_function)) int shared(int x) { return x; }
#endif

static __device__ int same(int x) {
    if (x < 10)
        return x;
    return shared(x);
}

__global__ void first(int *out) { out[threadIdx.x] = same(threadIdx.x); }
void launch_first(int *out) { first<<<1, 64>>>(out); }

//--- second.cu
extern __device__ int shared(int x);

static __device__ int same(int x) {
    if (x >= 10)
        return x;
#ifdef __CLANG_RDC__
    return shared(x);
#else
    return 1;
#endif
}

__global__ void second(int *out) { out[threadIdx.x] = same(threadIdx.x); }
void launch_second(int *out) { second<<<1, 32>>>(out); }

//--- main.cu
#include "check.h"
void launch_first(int *out);
void launch_second(int *out);

int main() {
    int *out = device_ints(64);
    launch_first(out);
    launch_second(out);
    CHECK(cudaDeviceSynchronize());
}
