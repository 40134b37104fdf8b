// Concurrent queues: kernels that wait for other kernels, for the host, or for other workgroups; many streams; events;
// graphs; memory that host and device share.
#include "check.h"

#include <unistd.h>

__global__ void wait_for(int *flag, int *out) {
    while (!__hip_atomic_load(flag, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM))
        ;
    out[threadIdx.x] = 5;
}

__global__ void set(int *flag) { __hip_atomic_store(flag, 1, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM); }

void test_waiting_kernels() {
    Report report("waiting kernels");
    int *flag = upload(std::vector<int>(1)), *out = upload(std::vector<int>(64));
    hipStream_t first, second;
    HIP(hipStreamCreateWithFlags(&first, hipStreamNonBlocking));
    HIP(hipStreamCreateWithFlags(&second, hipStreamNonBlocking));
    wait_for<<<1, 64, 0, first>>>(flag, out);
    usleep(20000);
    report.equal(0, int(hipErrorNotReady), int(hipStreamQuery(first)));
    set<<<1, 1, 0, second>>>(flag);
    HIP(hipStreamSynchronize(first));
    report.equal(63, 5, download(out, 64)[63]);

    int *shared;
    HIP(hipHostMalloc(&shared, 4096));
    *shared = 0;
    int *more = upload(std::vector<int>(64));
    wait_for<<<1, 64, 0, first>>>(shared, more);
    usleep(5000);
    __atomic_store_n(shared, 1, __ATOMIC_RELEASE);
    HIP(hipStreamSynchronize(first));
    report.equal(0, 5, download(more, 1)[0]);
    HIP(hipHostFree(shared));
}

// All workgroups wait until the last one has arrived.
__global__ void meet(int *count, int *out, int groups) {
    if (threadIdx.x == 0) {
        __hip_atomic_fetch_add(count, 1, __ATOMIC_ACQ_REL, __HIP_MEMORY_SCOPE_AGENT);
        while (__hip_atomic_load(count, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) < groups)
            __builtin_amdgcn_s_sleep(1);
    }
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = *count;
    __threadfence();
}

void test_grid_barrier() {
    Report report("grid barrier");
    int *arrived = upload(std::vector<int>(1)), *out = upload(std::vector<int>(40 * 80));
    meet<<<40, 80>>>(arrived, out, 40);
    auto got = download(out, 40 * 80);
    for (int i = 0; i < 40 * 80; i++)
        report.equal(i, 40, got[i]);
}

__global__ void add(int *to, int times) {
    for (int i = 0; i < times; i++)
        atomicAdd(to, 1);
}

void test_streams() {
    Report report("streams, events and graphs");
    int *sum = upload(std::vector<int>(1));
    hipStream_t streams[8];
    for (auto &stream : streams)
        HIP(hipStreamCreate(&stream));
    for (int round = 0; round < 20; round++)
        for (auto &stream : streams)
            add<<<3, 40, 0, stream>>>(sum, 7);
    HIP(hipDeviceSynchronize());
    report.equal(0, 20 * 8 * 3 * 40 * 7, download(sum, 1)[0]);

    hipEvent_t event;
    HIP(hipEventCreate(&event));
    int *one = upload(std::vector<int>(1)), *two = upload(std::vector<int>(1));
    add<<<3, 40, 0, streams[0]>>>(one, 1000);
    HIP(hipEventRecord(event, streams[0]));
    HIP(hipStreamWaitEvent(streams[1], event, 0));
    HIP(hipMemcpyAsync(two, one, 4, hipMemcpyDeviceToDevice, streams[1]));
    HIP(hipStreamSynchronize(streams[1]));
    report.equal(0, 120000, download(two, 1)[0]);

    hipGraph_t graph;
    hipGraphExec_t executable;
    int *counted = upload(std::vector<int>(1));
    HIP(hipStreamBeginCapture(streams[2], hipStreamCaptureModeGlobal));
    for (int i = 0; i < 10; i++)
        add<<<1, 32, 0, streams[2]>>>(counted, 1);
    HIP(hipStreamEndCapture(streams[2], &graph));
    HIP(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
    for (int i = 0; i < 5; i++)
        HIP(hipGraphLaunch(executable, streams[2]));
    HIP(hipStreamSynchronize(streams[2]));
    report.equal(0, 1600, download(counted, 1)[0]);
    for (auto stream : streams)
        HIP(hipStreamDestroy(stream));
}

__global__ void clocks(unsigned long long *out) {
    unsigned long long wall = wall_clock64();
    for (volatile int i = 0; i < 100; i++)
        ;
    out[0] = wall_clock64() - wall;
}

void test_clock() {
    Report report("clock");
    unsigned long long *ticks = upload(std::vector<unsigned long long>(1));
    clocks<<<1, 1>>>(ticks);
    auto passed = download(ticks, 1)[0];
    if (passed == 0 || passed >= 1000000000)
        report.differ(0, 1ull, passed);
}

int main(int argc, char **argv) {
    start(argc, argv);
    test_waiting_kernels();
    test_grid_barrier();
    test_streams();
    test_clock();
    return finish();
}
