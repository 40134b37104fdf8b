// Another tool has subscribed to CUPTI, which serves only one. The preloaded library collects without it. Otherwise one line
// names the tool, and the program runs as usual.
//
// VARIANTS: preload inject
// RUN: %{cu} cupti-taken.cu -o cupti-taken.o
// RUN: %{cxx} cupti-taken.o -o out/a %{link} -L$CUDA_PATH/lib -lcupti
//
// INJECT: stderr: devprof: cannot observe CUDA modules, so their counters are lost: another tool uses CUPTI, which serves only one: {{.*}}other-tool{{.*}}
// PRELOAD: sm_90.default.profraw: _Z6kernelPi: [64]
#include "check.h"
#include <cupti.h>

__global__ void kernel(int *out) { out[threadIdx.x] = 1; }

static void callback(void *, CUpti_CallbackDomain, CUpti_CallbackId, const void *) {}

int main() {
    CUpti_SubscriberHandle subscriber;
    CUpti_SubscriberParams parameters = {};
    parameters.structSize = sizeof parameters;
    parameters.subscriberName = "other-tool";
    char other[256] = "";
    parameters.oldSubscriberName = other;
    parameters.oldSubscriberSize = sizeof other;
    EXPECT(cuptiSubscribe_v2(&subscriber, callback, nullptr, &parameters) == CUPTI_SUCCESS);
    kernel<<<1, 64>>>(device_ints(64));
    CHECK(cudaDeviceSynchronize());
}
