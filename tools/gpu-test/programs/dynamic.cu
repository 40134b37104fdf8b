// Dynamic parallelism: kernels that launch kernels. clang's code needs RDC and NVIDIA's device runtime.
//
// VARIANTS: rdc
// RUN: %{cu} dynamic.cu -o dynamic.o
// RUN: %{cxx} dynamic.o -o out/a %{link} -Xoffload-linker $CUDA_PATH/lib/libcudadevrt.a
//
// CHECK: sm_90.default.profraw: _Z5childPi: [64]
// 4 parents, of which two launch 32 threads.
// CHECK: sm_90.default.profraw: _Z6parentPi: [4, 2]
#include "check.h"

__global__ void child(int *out) { atomicAdd(out, 1); }

__global__ void parent(int *out) {
    if (threadIdx.x % 2)
        child<<<1, 32>>>(out);
}

int main() {
    int *out = device_ints(1);
    parent<<<1, 4>>>(out);
    CHECK(cudaDeviceSynchronize());
    int launched;
    CHECK(cudaMemcpy(&launched, out, sizeof launched, cudaMemcpyDeviceToHost));
    EXPECT(launched == 64);
}
