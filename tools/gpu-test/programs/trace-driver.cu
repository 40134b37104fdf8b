// 100 launches by the driver API and 50 by cudaLaunchKernelExC, all of one kernel.
//
// VARIANTS: plain+preload
// REQUIRES: cupti
// GPU: . $ROOT/lib/trace.sh
// GPU: traced driver %a; kernels kernel; calls cuLaunchKernel; calls cudaLaunchKernelExC; correlated
//
// CHECK: stdout: sum 3600
// CHECK: stdout: driver: exit status 0
// CHECK: stdout: kernels kernel: 150
// CHECK: stdout: calls cuLaunchKernel: 100
// CHECK: stdout: calls cudaLaunchKernelExC: 50
// CHECK: stdout: without a call: 0
#include "check.h"
__global__ void kernel(int *p) { atomicAdd(p, 1); }
int main() {
    int *d, host = 0;
    CHECK(cudaMalloc(&d, 4));
    CHECK(cudaMemset(d, 0, 4));
    cudaFunction_t function;
    CHECK(cudaGetFuncBySymbol(&function, (void *)kernel));
    decltype(&cuLaunchKernel) launch = nullptr;
    cudaDriverEntryPointQueryResult result;
    CHECK(cudaGetDriverEntryPointByVersion("cuLaunchKernel", (void **)&launch, 12000, cudaEnableDefault, &result));
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    void *arguments[] = {&d};
    for (int n = 0; n < 100; n++)
        if (launch((CUfunction)function, 2, 1, 1, 16, 1, 1, 0, (CUstream)stream, arguments, nullptr) != CUDA_SUCCESS)
            return 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(1), config.blockDim = dim3(8), config.stream = stream;
    for (int n = 0; n < 50; n++)
        CHECK(cudaLaunchKernelExC(&config, (void *)kernel, arguments));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(&host, d, 4, cudaMemcpyDeviceToHost));
    printf("sum %d\n", host);
    return host != 3600;
}
