// The program whose trace docs/perfetto.png shows: kernels on two streams with a pair of buffers each, a copy, and a graph of
// twelve kernels that is launched twice.
#include <hip/hip_runtime.h>
#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                        \
    do {                                                                                   \
        if (hipError_t error = (call); error != hipSuccess) {                              \
            fprintf(stderr, "%s: %s\n", #call, hipGetErrorString(error));                  \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)

constexpr int N = 16384;

__global__ void make_wave(float *out, float phase) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = phase + 2.0f * i / N;
}

__global__ void smooth(const float *in, float *out) {
    __shared__ float tile[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = in[i];
    __syncthreads();
    float sum = 0;
    for (int n = 0; n < 16; ++n)
        sum += tile[(threadIdx.x + n) % 256];
    out[i] = sum / 16;
}

__global__ void clip(float *data) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    data[i] = data[i] > 1.0f ? 1.0f : data[i];
}

int main() {
    float *in[2], *out[2];
    hipStream_t streams[2];
    for (int n = 0; n < 2; ++n) {
        CHECK(hipMalloc(&in[n], N * sizeof(float)));
        CHECK(hipMalloc(&out[n], N * sizeof(float)));
        CHECK(hipStreamCreate(&streams[n]));
    }
    float *host = (float *)malloc(N * sizeof(float));
    for (int round = 0; round < 4; ++round)
        for (int n = 0; n < 2; ++n) {
            make_wave<<<N / 256, 256, 0, streams[n]>>>(in[n], round);
            for (int pass = 0; pass < 2 + n; ++pass)
                smooth<<<N / 256, 256, 0, streams[n]>>>(in[n], out[n]);
            clip<<<N / 256, 256, 0, streams[n]>>>(out[n]);
        }
    CHECK(hipMemcpyAsync(host, out[0], N * sizeof(float), hipMemcpyDeviceToHost, streams[0]));
    CHECK(hipDeviceSynchronize());

    hipGraph_t graph;
    hipGraphExec_t executable;
    CHECK(hipStreamBeginCapture(streams[0], hipStreamCaptureModeGlobal));
    for (int n = 0; n < 6; ++n) {
        smooth<<<N / 256, 256, 0, streams[0]>>>(in[0], out[0]);
        clip<<<N / 256, 256, 0, streams[0]>>>(out[0]);
    }
    CHECK(hipStreamEndCapture(streams[0], &graph));
    CHECK(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
    for (int n = 0; n < 2; ++n)
        CHECK(hipGraphLaunch(executable, streams[n]));
    CHECK(hipDeviceSynchronize());
}
