// Programs in which other tracers failed: field MODE ARGUMENT…
//
//     null STREAMS LAUNCHES only|sync|copies   launches on the NULL stream next to idle blocking streams; nothing else,
//                                              a synchronization after each, or copies in both directions as well
//     graph NODES LAUNCHES                     launches a graph of kernels
//     wide NODES LAUNCHES                      launches a graph of a kernel, NODES kernels that do not depend on each other,
//                                              and a kernel that waits for all of them
//     flight LAUNCHES STREAMS                  launches behind a kernel that waits for the host: all are in flight at once
//     events LAUNCHES                          the same, with an event after each launch
//     mixed                                    kernels on several streams, copies, and a graph
//     pools LAUNCHES                           allocates and frees memory in the stream, around each launch
//
// Prints the number of kernels that ran.
#include "check.h"
#include <string.h>
#include <vector>

__global__ void add(unsigned *sum) {
    if (threadIdx.x == 0)
        atomicAdd(sum, 1);
}

__global__ void add_to(unsigned *sum, unsigned *memory) {
    memory[threadIdx.x] = 1;
    if (threadIdx.x == 0)
        atomicAdd(sum, memory[0]);
}

__global__ void wait(volatile unsigned *go) {
    while (!*go)
        __builtin_amdgcn_s_sleep(1);
}

static unsigned *sum;

static void launch(int count, hipStream_t stream) {
    for (int n = 0; n < count; ++n)
        add<<<1, 32, 0, stream>>>(sum);
}

static std::vector<hipStream_t> streams_of(int count, unsigned flags) {
    std::vector<hipStream_t> streams(count);
    for (auto &stream : streams)
        CHECK(hipStreamCreateWithFlags(&stream, flags));
    return streams;
}

static void null_stream(int count, int launches, const char *how) {
    auto idle = streams_of(count, hipStreamDefault);
    for (auto stream : idle)
        launch(1, stream);
    CHECK(hipDeviceSynchronize());
    bool sync = !strcmp(how, "sync"), copies = !strcmp(how, "copies");
    unsigned *from, *to, *device, wrong = 0;
    CHECK(hipHostMalloc((void **)&from, 64, 0));
    CHECK(hipHostMalloc((void **)&to, 64, 0));
    CHECK(hipMalloc(&device, 64));
    for (int n = 0; n < launches; ++n) {
        *from = n / 100;
        if (copies) {
            CHECK(hipMemcpyAsync(device, from, sizeof *from, hipMemcpyHostToDevice, nullptr));
            CHECK(hipMemcpyAsync(to, device, sizeof *to, hipMemcpyDeviceToHost, nullptr));
        }
        launch(1, nullptr);
        if (sync || n % 100 == 99)
            CHECK(hipStreamSynchronize(nullptr));
        if (copies && n % 100 == 99)
            wrong += *to != *from;
    }
    CHECK(hipDeviceSynchronize());
    printf("wrong: %u\n", wrong);
    for (auto stream : idle)
        CHECK(hipStreamDestroy(stream));
}

static hipGraphExec_t graph_of(int nodes, hipStream_t stream) {
    hipGraph_t graph;
    hipGraphExec_t exec;
    CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
    launch(nodes, stream);
    CHECK(hipStreamEndCapture(stream, &graph));
    CHECK(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
    CHECK(hipGraphDestroy(graph));
    return exec;
}

static hipGraphExec_t wide_graph_of(int nodes) {
    hipGraph_t graph;
    hipGraphExec_t exec;
    CHECK(hipGraphCreate(&graph, 0));
    void *arguments[] = {&sum};
    hipKernelNodeParams kernel = {};
    kernel.func = (void *)add;
    kernel.gridDim = dim3(1);
    kernel.blockDim = dim3(32);
    kernel.kernelParams = arguments;
    hipGraphNode_t first, last;
    std::vector<hipGraphNode_t> middle(nodes);
    CHECK(hipGraphAddKernelNode(&first, graph, nullptr, 0, &kernel));
    for (auto &node : middle)
        CHECK(hipGraphAddKernelNode(&node, graph, &first, 1, &kernel));
    CHECK(hipGraphAddKernelNode(&last, graph, middle.data(), middle.size(), &kernel));
    CHECK(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
    CHECK(hipGraphDestroy(graph));
    return exec;
}

static void graph(int nodes, int launches, bool is_wide) {
    hipStream_t stream;
    CHECK(hipStreamCreate(&stream));
    hipGraphExec_t exec = is_wide ? wide_graph_of(nodes) : graph_of(nodes, stream);
    for (int n = 0; n < launches; ++n)
        CHECK(hipGraphLaunch(exec, stream));
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipGraphExecDestroy(exec));
    CHECK(hipStreamDestroy(stream));
}

static void flight(int launches, int count, bool has_events) {
    unsigned *go;
    CHECK(hipHostMalloc((void **)&go, sizeof *go, 0));
    *go = 0;
    auto streams = streams_of(count, hipStreamNonBlocking);
    std::vector<hipEvent_t> events(has_events ? launches : 0);
    for (auto stream : streams)
        wait<<<1, 1, 0, stream>>>(go);
    for (int n = 0; n < launches; ++n) {
        launch(1, streams[n % count]);
        if (has_events) {
            CHECK(hipEventCreateWithFlags(&events[n], hipEventDisableTiming));
            CHECK(hipEventRecord(events[n], streams[n % count]));
        }
    }
    printf("before: %d\n", hipStreamQuery(streams[0]) == hipErrorNotReady);
    __atomic_store_n(go, 1, __ATOMIC_SEQ_CST);
    for (auto event : events) {
        CHECK(hipEventSynchronize(event));
        CHECK(hipEventDestroy(event));
    }
    for (auto stream : streams) {
        CHECK(hipStreamSynchronize(stream));
        CHECK(hipStreamDestroy(stream));
    }
}

static void mixed() {
    auto streams = streams_of(4, hipStreamDefault);
    unsigned *from, *to, *device;
    CHECK(hipHostMalloc((void **)&from, 4096, 0));
    CHECK(hipHostMalloc((void **)&to, 4096, 0));
    CHECK(hipMalloc(&device, 4096));
    hipGraphExec_t exec = graph_of(100, streams[0]);
    unsigned wrong = 0;
    for (int n = 0; n < 4; ++n) {
        *from = n;
        CHECK(hipMemcpyAsync(device, from, 4096, hipMemcpyHostToDevice, streams[1]));
        for (auto stream : streams)
            launch(10, stream);
        CHECK(hipGraphLaunch(exec, streams[n % 4]));
        CHECK(hipMemcpyAsync(to, device, 4096, hipMemcpyDeviceToHost, streams[1]));
        launch(10, nullptr);
        CHECK(hipMemsetAsync(device, 0, 4096, streams[1]));
        CHECK(hipDeviceSynchronize());
        wrong += *to != unsigned(n);
    }
    printf("wrong: %u\n", wrong);
    CHECK(hipGraphExecDestroy(exec));
    for (auto stream : streams)
        CHECK(hipStreamDestroy(stream));
}

static void pools(int launches) {
    hipStream_t stream;
    CHECK(hipStreamCreate(&stream));
    for (int n = 0; n < launches; ++n) {
        unsigned *memory;
        CHECK(hipMallocAsync((void **)&memory, 256 << n % 8, stream));
        add_to<<<1, 64, 0, stream>>>(sum, memory);
        CHECK(hipFreeAsync(memory, stream));
    }
    CHECK(hipStreamSynchronize(stream));
    CHECK(hipStreamDestroy(stream));
}

int main(int argc, char **argv) {
    auto number = [&](int n) { return n < argc ? atoi(argv[n]) : 0; };
    const char *mode = argc > 1 ? argv[1] : "";
    CHECK(hipMalloc(&sum, sizeof *sum));
    CHECK(hipMemset(sum, 0, sizeof *sum));
    CHECK(hipDeviceSynchronize()); // hipMemset does not wait, nor does a non-blocking stream wait for it.
    if (!strcmp(mode, "null") && argc == 5)
        null_stream(number(2), number(3), argv[4]);
    else if (!strcmp(mode, "graph"))
        graph(number(2), number(3), false);
    else if (!strcmp(mode, "wide"))
        graph(number(2), number(3), true);
    else if (!strcmp(mode, "flight"))
        flight(number(2), number(3), false);
    else if (!strcmp(mode, "events"))
        flight(number(2), 1, true);
    else if (!strcmp(mode, "mixed"))
        mixed();
    else if (!strcmp(mode, "pools"))
        pools(number(2));
    else
        return 2;
    unsigned ran;
    CHECK(hipMemcpy(&ran, sum, sizeof ran, hipMemcpyDeviceToHost));
    CHECK(hipFree(sum));
    printf("ran: %u\n", ran);
}
