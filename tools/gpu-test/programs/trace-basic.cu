// 20 kernels on two streams, 5 on the NULL stream, copies of each direction, fills, NVTX's markers and names.
//
// VARIANTS: plain+preload
// REQUIRES: cupti
// GPU: . $ROOT/lib/trace.sh
// GPU: traced basic env DEVPROF_TRACE_COPIES=1 DEVPROF_TRACE_MARKERS=1 %a
// GPU: second=$(has '"type":"agent".*"id":1,')
// GPU: kernels add $second; kernels shared_user; calls cudaLaunchKernel $second
// GPU: copies 'host_to_device","size":1048576'; copies 'device_to_host","size":1048576'; copies 'device_to_device","size":262144'
// GPU: copies 'device_to_device","size":1048576' $second; copies fill
// GPU: echo "streams: $(has '"type":"stream"')"; echo "marker: $(has '"type":"(marker|range|mark)[^}]*setup')"
// GPU: correlated; clocks
// All API calls. Those that a call makes are not recorded.
// GPU: traced api env DEVPROF_TRACE_API=1 DEVPROF_TRACE_COPIES=1 %a
// GPU: calls cudaLaunchKernel $second; calls cuLaunchKernel; calls cudaMallocHost; calls cudaStreamSynchronize; correlated
//
// CHECK: stdout: basic: exit status 0
// CHECK: stdout: kernels add: 16
// CHECK: stdout: kernels shared_user: 10
// CHECK: stdout: calls cudaLaunchKernel: 26
// CHECK: stdout: copies host_to_device","size":1048576: 2
// CHECK: stdout: copies device_to_host","size":1048576: 2
// CHECK: stdout: copies device_to_device","size":262144: 1
// CHECK: stdout: copies device_to_device","size":1048576: 0
// CHECK: stdout: copies fill: 2
// CHECK: stdout: streams: 4
// CHECK: stdout: marker: 1
// CHECK: stdout: without a call: 0
// CHECK: stdout: on another clock than the trace's: 0
// CHECK: stdout: api: exit status 0
// CHECK: stdout: calls cudaLaunchKernel: 26
// CHECK: stdout: calls cuLaunchKernel: 0
// CHECK: stdout: calls cudaMallocHost: 1
// CHECK: stdout: calls cudaStreamSynchronize: 2
// CHECK: stdout: without a call: 0
#include "check.h"
#include <string.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCudaRt.h>
#include <pthread.h>
#include <sys/syscall.h>
__global__ void add(int *p, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) atomicAdd(p + i % 64, 1); }
__global__ void shared_user(int *p) { extern __shared__ int s[]; s[threadIdx.x] = threadIdx.x; __syncthreads(); p[threadIdx.x] = s[(threadIdx.x + 1) % blockDim.x]; }
static void *other(void *p) {
    nvtxNameOsThreadA(syscall(SYS_gettid), "worker");
    nvtxRangePushA("worker's range");
    add<<<1, 32, 0, cudaStreamPerThread>>>((int *)p, 32);
    CHECK(cudaStreamSynchronize(cudaStreamPerThread));
    nvtxRangePop();
    return nullptr;
}
int main() {
    const size_t size = 1 << 20;
    int *d, *e;
    void *pageable = malloc(size), *pinned;
    nvtxRangePushA("setup");
    CHECK(cudaMalloc(&d, size));
    CHECK(cudaMalloc(&e, size));
    CHECK(cudaMallocHost(&pinned, size));
    memset(pageable, 1, size);
    memset(pinned, 2, size);
    nvtxRangePop();
    cudaStream_t a, b;
    CHECK(cudaStreamCreate(&a));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    nvtxNameCudaStreamA(a, "stream a");
    nvtxNameCudaDeviceA(0, "the GPU");
    CHECK(cudaMemset(d, 0, size));
    CHECK(cudaMemsetAsync(e, 0, size / 2, a));
    CHECK(cudaMemcpy(d, pageable, size, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpyAsync(e, pinned, size, cudaMemcpyHostToDevice, a));
    CHECK(cudaMemcpyAsync(e, d, size / 4, cudaMemcpyDeviceToDevice, a));
    nvtxDomainHandle_t domain = nvtxDomainCreateA("library");
    nvtxEventAttributes_t event = {};
    event.version = NVTX_VERSION, event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    event.messageType = NVTX_MESSAGE_TYPE_REGISTERED, event.message.registered = nvtxDomainRegisterStringA(domain, "registered text");
    nvtxDomainRangePushEx(domain, &event);
    nvtxRangeId_t range = nvtxRangeStartA("process range");
    for (int n = 0; n < 10; n++) {
        add<<<4, 64, 0, a>>>(d, 200);
        shared_user<<<1, 128, 512, b>>>(e);
    }
    for (int n = 0; n < 5; n++)
        add<<<dim3(2, 3), dim3(8, 8)>>>(d, 200);
    nvtxRangeEnd(range);
    nvtxDomainRangePop(domain);
    nvtxMarkW(L"wide mark \u00e9");
    CHECK(cudaDeviceSynchronize());
    pthread_t thread;
    pthread_create(&thread, nullptr, other, d);
    pthread_join(thread, nullptr);
    CHECK(cudaMemcpy(pageable, d, size, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpyAsync(pinned, e, size, cudaMemcpyDeviceToHost, b));
    CHECK(cudaStreamSynchronize(b));
    int devices = 0;
    CHECK(cudaGetDeviceCount(&devices));
    if (devices > 1) {
        int *f;
        CHECK(cudaSetDevice(1));
        CHECK(cudaMalloc(&f, size));
        CHECK(cudaMemcpyPeer(f, 1, d, 0, size));
        add<<<1, 32>>>(f, 32);
        CHECK(cudaDeviceSynchronize());
    }
    return 0;
}
