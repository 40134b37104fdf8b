// HIP programs under a trace: the same output, and every kernel is recorded once.
//
// RUN: %hip_cxx -O2 %s -o p -lamdhip64
// RUN: bash -euc 'for what in one streams graph threads copies events early leave; do bash %S/Inputs/same $what %devprof_so ./p $what > out; %trace --queues $what.trace >> out; FileCheck %s --check-prefix=${what^^} < out; done'
#include "check.h"
#include <hip/hip_ext.h>
#include <string.h>
#include <thread>
#include <vector>

__global__ void add(unsigned *sum) {
    if (threadIdx.x == 0)
        atomicAdd(sum, 1);
}

static unsigned *sum;

static unsigned added() {
    unsigned value;
    CHECK(hipDeviceSynchronize());
    CHECK(hipMemcpy(&value, sum, sizeof value, hipMemcpyDeviceToHost));
    return value;
}

static void launch(int count, hipStream_t stream) {
    for (int n = 0; n < count; ++n)
        add<<<1, 32, 0, stream>>>(sum);
}

int main(int, char **argv) {
    const char *what = argv[1];
    CHECK(hipMalloc(&sum, sizeof *sum));
    CHECK(hipMemset(sum, 0, sizeof *sum));
    CHECK(hipDeviceSynchronize()); // hipMemset does not wait, nor does a non-blocking stream wait for it.
    if (!strcmp(what, "one")) {
        // ONE: added: 500
        // ONE: exit: 0
        // ONE: kernels:{{.*}} _Z3addPj 500
        launch(500, nullptr);
    } else if (!strcmp(what, "streams")) {
        // STREAMS: added: 420
        // STREAMS: exit: 0
        // STREAMS: kernels:{{.*}} _Z3addPj 420
        hipStream_t streams[21];
        for (auto &stream : streams)
            CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
        for (int n = 0; n < 20; ++n)
            for (auto stream : streams)
                launch(1, stream);
        CHECK(hipDeviceSynchronize());
        for (auto stream : streams)
            CHECK(hipStreamDestroy(stream));
    } else if (!strcmp(what, "graph")) {
        // GRAPH: added: 60000
        // GRAPH: exit: 0
        // GRAPH: kernels:{{.*}} _Z3addPj 60000
        hipStream_t stream;
        hipGraph_t graph;
        hipGraphExec_t executable;
        CHECK(hipStreamCreate(&stream));
        CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal));
        launch(300, stream);
        CHECK(hipStreamEndCapture(stream, &graph));
        CHECK(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
        for (int n = 0; n < 200; ++n)
            CHECK(hipGraphLaunch(executable, stream));
        CHECK(hipStreamSynchronize(stream));
    } else if (!strcmp(what, "threads")) {
        // THREADS: added: 800
        // THREADS: exit: 0
        // THREADS: kernels:{{.*}} _Z3addPj 800
        std::vector<std::thread> threads;
        for (int n = 0; n < 8; ++n)
            threads.emplace_back([n] {
                hipStream_t stream = nullptr;
                if (n % 2)
                    CHECK(hipStreamCreate(&stream));
                launch(100, stream);
                CHECK(hipStreamSynchronize(stream));
            });
        for (auto &thread : threads)
            thread.join();
    } else if (!strcmp(what, "copies")) {
        // COPIES: wrong: 0
        // COPIES: added: 1
        // COPIES: exit: 0
        // COPIES: kernels: _Z3addPj 1 __amd_rocclr_copyBuffer {{[0-9]+}} __amd_rocclr_fillBufferAligned {{[0-9]+}}
        int wrong = 0;
        for (size_t size = 1; size < 2u << 20; size = size * 3 + 1) {
            std::vector<unsigned char> from(size), to(size);
            for (size_t n = 0; n < size; ++n)
                from[n] = n * 7 + size;
            unsigned char *a, *b;
            CHECK(hipMalloc(&a, size));
            CHECK(hipMalloc(&b, size));
            CHECK(hipMemcpy(a, from.data(), size, hipMemcpyHostToDevice));
            CHECK(hipMemset(b, 0x5a, size));
            CHECK(hipMemcpy(b, a, size / 2, hipMemcpyDeviceToDevice));
            CHECK(hipMemcpy(to.data(), b, size, hipMemcpyDeviceToHost));
            for (size_t n = 0; n < size; ++n)
                wrong += to[n] != (n < size / 2 ? from[n] : 0x5a);
            CHECK(hipFree(a));
            CHECK(hipFree(b));
        }
        printf("wrong: %d\n", wrong);
        launch(1, nullptr);
    } else if (!strcmp(what, "events")) {
        // ROCr's model mode has no GPU clock: the times are 0 (see times.test).
        // EVENTS: waited: 0 0 0, elapsed: plausible plausible
        // EVENTS: added: 30
        // EVENTS: exit: 0
        // EVENTS: kernels:{{.*}} _Z3addPj 30
        hipEvent_t start, end;
        CHECK(hipEventCreate(&start));
        CHECK(hipEventCreate(&end));
        CHECK(hipEventRecord(start));
        launch(20, nullptr);
        CHECK(hipEventRecord(end));
        float elapsed[2] = {-1, -1};
        printf("waited: %d", hipEventSynchronize(end));
        CHECK(hipEventElapsedTime(&elapsed[0], start, end));
        for (int n = 0; n < 10; ++n)
            hipExtLaunchKernelGGL(add, dim3(1), dim3(32), 0, nullptr, start, end, 0, sum);
        printf(" %d", hipEventSynchronize(end));
        CHECK(hipEventElapsedTime(&elapsed[1], start, end));
        printf(" %d, elapsed:", hipEventQuery(start));
        // 0 in ROCr's model mode, which has no clock.
        for (float ms : elapsed)
            printf(ms >= 0 && ms < 1e6 ? " plausible" : " %g", ms);
        printf("\n");
    } else if (!strcmp(what, "early")) {
        // EARLY: added: 200
        // EARLY: exit: 0
        // EARLY: kernels:{{.*}} _Z3addPj 200
        for (int n = 0; n < 10; ++n) {
            hipStream_t stream;
            CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
            launch(20, stream);
            CHECK(hipStreamDestroy(stream));
        }
    } else if (!strcmp(what, "leave")) {
        // LEAVE-NOT: added
        // LEAVE: exit: 0
        // LEAVE: kernels:{{.*}} _Z3addPj 900
        // LEAVE: dropped: 0 0 0 unknown packets: 0 closed: 1
        hipStream_t streams[3];
        for (auto &stream : streams) {
            CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
            launch(300, stream);
        }
        return 0;
    }
    printf("added: %u\n", added());
}
