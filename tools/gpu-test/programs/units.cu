// Several translation units. With RDC they are linked to one image, and device functions of one are called from others.
// Static functions of the same name have their own counts. Without RDC each unit has an image and a profile.
//
// BUILD: program main.cu first.cu second.cu
// VARIANTS: O2 eager O0+rdc O2+rdc O2+lto archive+rdc
// All images are loaded when CUDA is initialized.
// ENV[eager]: CUDA_MODULE_LOADING=EAGER
//
// COUNTS[!rdc,!lto]: sm_90*.default.profraw _Z5firstPi: [64]
// COUNTS[!rdc,!lto]: sm_90*.default.profraw _Z6secondPi: [32]
// COUNTS[!rdc,!lto]: sm_90*.default.profraw first:_ZL4samei: [64, 10]
// COUNTS[!rdc,!lto]: sm_90*.default.profraw second:_ZL4samei: [32, 22]
// FILES[!rdc,!lto]: 2 sm_90*.default.profraw
//
// With RDC, the first unit calls the shared function for 10 … 63, the second one for 0 … 9.
// COUNTS[rdc]: sm_90 _Z5firstPi: [64]
// COUNTS[rdc]: sm_90 _Z6secondPi: [32]
// COUNTS[rdc]: sm_90 _Z6sharedi: [64, 32]
// COUNTS[rdc]: sm_90 first:_ZL4samei: [64, 10]
// COUNTS[rdc]: sm_90 second:_ZL4samei: [32, 22]
// COUNTS[lto]: sm_90 _Z5firstPi: [64]
// COUNTS[lto]: sm_90 _Z6secondPi: [32]
// COUNTS[lto]: sm_90 _Z6sharedi: [64, 32]
// COUNTS[lto]: sm_90 first:_ZL4samei: [64, 10]
// COUNTS[lto]: sm_90 second:_ZL4samei: [32, 22]

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
