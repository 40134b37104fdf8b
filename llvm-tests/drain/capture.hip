// A collect call, a reset and the exit while a stream is being captured: the capture stays valid and its graph runs, and
// devprof waits for the kernels that run in other streams. HIP's own functions that wait make all captures invalid.
//
// RUN: %hip_cxx %pgo %exact -O2 %s -o a %devprof_a
// RUN: %hip_cxx %device_pgo %exact -O2 %s -o b %devprof_so
// RUN: env ARCH=gfx1100 LLVM_PROFILE_FILE=global.profraw ./a global > out 2> err && FileCheck %s < out
// RUN: not grep ^devprof: err
// RUN: env ARCH=gfx1100 LLVM_PROFILE_FILE=relaxed.profraw ./a relaxed > out 2> err && FileCheck %s < out
// RUN: not grep ^devprof: err
// RUN: env ARCH=gfx1100 LLVM_PROFILE_FILE=other.profraw ./b other > out 2> err && FileCheck %s < out
// RUN: not grep ^devprof: err
//
// The kernel ran to its end before the first collection, and was reset. The kernel of the graph ran after the reset.
// RUN: bash -euc 'for name in global relaxed other; do %counts first.$name.profraw; %counts gfx1100.$name.profraw; done' | FileCheck %s --check-prefix=COUNTS
// COUNTS:      {{^}}_Z4nodePi: [0]{{$}}
// COUNTS-NEXT: {{^}}_Z6longerPii: [256, 256000]{{$}}
// COUNTS-NEXT: {{^}}_Z4nodePi: [64]{{$}}
// COUNTS-NEXT: {{^}}_Z6longerPii: [128, 128000]{{$}}
// COUNTS-NEXT: {{^}}_Z4nodePi: [0]{{$}}
// COUNTS-NEXT: {{^}}_Z6longerPii: [256, 256000]{{$}}
// COUNTS-NEXT: {{^}}_Z4nodePi: [64]{{$}}
// COUNTS-NEXT: {{^}}_Z6longerPii: [128, 128000]{{$}}
// COUNTS-NEXT: {{^}}_Z4nodePi: [0]{{$}}
// COUNTS-NEXT: {{^}}_Z6longerPii: [256, 256000]{{$}}
// COUNTS-NEXT: {{^}}_Z4nodePi: [64]{{$}}
// COUNTS-NEXT: {{^}}_Z6longerPii: [128, 128000]{{$}}
//
// CHECK:      collect: 0, reset
// CHECK-NEXT: end of the first capture: 0
// CHECK-NEXT: the second capture is active
// CHECK-NOT:  {{.}}
#include "check.h"
#include <string>
#include <thread>

extern "C" int __llvm_profile_hip_collect_device_data();
extern "C" int devprof_reset_counters();

__global__ void longer(int *out, int n) {
    for (int i = 0; i < n; i++)
        atomicAdd(out, i);
}

__global__ void node(int *out) { atomicAdd(out, 1); }

static hipStream_t captured;

// Runs after devprof's exit handler, which is registered later.
static void check_capture() {
    hipStreamCaptureStatus status = hipStreamCaptureStatusInvalidated;
    CHECK(hipStreamIsCapturing(captured, &status));
    printf("the second capture is %s\n", status == hipStreamCaptureStatusActive ? "active" : "not active");
}
__attribute__((constructor(101))) static void first() { atexit(check_capture); }

static void collect_and_reset() {
    int lost = __llvm_profile_hip_collect_device_data();
    std::string file = getenv("LLVM_PROFILE_FILE");
    rename((getenv("ARCH") + ("." + file)).c_str(), ("first." + file).c_str());
    devprof_reset_counters();
    printf("collect: %d, reset\n", lost);
}

int main(int, char **argv) {
    std::string how = argv[1];
    int *out = device_ints(1);
    hipStream_t running;
    CHECK(hipStreamCreateWithFlags(&running, hipStreamNonBlocking));
    CHECK(hipStreamCreateWithFlags(&captured, hipStreamNonBlocking));
    auto mode = how == "global" ? hipStreamCaptureModeGlobal : how == "relaxed" ? hipStreamCaptureModeRelaxed : hipStreamCaptureModeThreadLocal;

    CHECK(hipStreamBeginCapture(captured, mode));
    node<<<1, 64, 0, captured>>>(out);
    longer<<<4, 64, 0, running>>>(out, 1000);
    if (how == "other")
        std::thread(collect_and_reset).join();
    else
        collect_and_reset();
    hipGraph_t graph;
    printf("end of the first capture: %d\n", hipStreamEndCapture(captured, &graph));
    hipGraphExec_t exec;
    CHECK(hipGraphInstantiate(&exec, graph, nullptr, nullptr, 0));
    CHECK(hipGraphLaunch(exec, captured));
    CHECK(hipStreamSynchronize(captured));

    CHECK(hipStreamBeginCapture(captured, mode));
    longer<<<2, 64, 0, running>>>(out, 1000);
}
