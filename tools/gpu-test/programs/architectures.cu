// Programs with code for two architectures, of which the GPU runs one, and with PTX that the driver compiles for the GPU.
// The profile is named after the GPU's architecture.
//
// VARIANTS: two ptx
// REQUIRES: cupti || !ptx
// RUN: %if two %{ %{cu} architectures.cu --offload-arch=sm_80 -o architectures.o %}
// RUN: %if two %{ %{cxx} architectures.o -o out/a %{link} %}
// RUN: %if ptx %{ %{cu} architectures.cu --no-offload-arch=%arch --offload-arch=sm_80 --cuda-include-ptx=sm_80 -o architectures.o %}
// RUN: %if ptx %{ %{cxx} architectures.o -o out/a %{link} %}
//
// CHECK: sm_90.default.profraw: _Z6kernelPi: [64, 40]
#include "check.h"

__global__ void kernel(int *out) {
    if (threadIdx.x < 40)
        out[threadIdx.x] = 1;
}

int main() {
    kernel<<<1, 64>>>(device_ints(64));
    CHECK(cudaDeviceSynchronize());
}
