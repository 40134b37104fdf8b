// Two processes share the memory of a GPU, and events (hipIpc…): each runs a kernel on the other's memory. Each has its own
// profile.
//
// REQUIRES: gfx1100, sim
// RUN: %hip_cxx %device_pgo %exact -O1 %s -o a %take_devprof %devprof_a
// DEFINE: %{run} = env HSA_SIM_AGENTS=gfx1100,gfx1100 %on_sim
// RUN: %{run} LLVM_PROFILE_FILE=p/%%p ./a > out && FileCheck %s < out
// RUN: %{run} HSA_SIM_BAR=large LLVM_PROFILE_FILE=large.%%p ./a > out && FileCheck %s < out
// CHECK:      child: sum 2016
// CHECK-NEXT: child: closed: no error
// CHECK-NEXT: child: closed again: invalid argument
// CHECK-NEXT: child: event: no error
// CHECK-NEXT: parent: sum 4032
// CHECK-NEXT: parent: own handle: invalid device context
// CHECK-NEXT: parent: registered 126
// CHECK-NOT:  {{.}}
// RUN: ls p | count 3 && %counts p/gfx1100.* | FileCheck %s --check-prefix=COUNTS
// COUNTS-DAG: {{^}}_Z3addPKiiPi: [128, 128]{{$}}
// COUNTS-DAG: {{^}}_Z4fillPi: [192]{{$}}
// COUNTS-DAG: {{^}}_Z5twicePi: [64]{{$}}
#include "check.h"
#include <sys/wait.h>
#include <unistd.h>

__global__ void add(const int *in, int count, int *sum) {
    if (threadIdx.x < count)
        atomicAdd(sum, in[threadIdx.x]);
}

__global__ void twice(int *numbers) { numbers[threadIdx.x] *= 2; }

__global__ void fill(int *numbers) { numbers[threadIdx.x] = threadIdx.x; }

struct handles {
    hipIpcMemHandle_t memory;
    hipIpcEventHandle_t event;
};

static int sum(const int *in, int count) {
    int *out = device_ints(1), result;
    CHECK(hipMemset(out, 0, 4));
    add<<<1, 64>>>(in, count, out);
    CHECK(hipMemcpy(&result, out, 4, hipMemcpyDeviceToHost));
    CHECK(hipFree(out));
    return result;
}

static void child(int in, int out) {
    handles shared;
    char byte = 0;
    if (read(in, &shared, sizeof shared) != sizeof shared)
        abort();
    CHECK(hipSetDevice(1));
    void *memory;
    hipEvent_t event;
    CHECK(hipIpcOpenMemHandle(&memory, shared.memory, hipIpcMemLazyEnablePeerAccess));
    printf("child: sum %d\n", sum((int *)memory, 64));
    twice<<<1, 64>>>((int *)memory);
    CHECK(hipDeviceSynchronize());
    printf("child: closed: %s\n", hipGetErrorString(hipIpcCloseMemHandle(memory)));
    printf("child: closed again: %s\n", hipGetErrorString(hipIpcCloseMemHandle(memory)));
    CHECK(hipIpcOpenEventHandle(&event, shared.event));
    printf("child: event: %s\n", hipGetErrorString(hipEventSynchronize(event)));
    CHECK(hipEventDestroy(event));
    fflush(stdout);
    if (write(out, &byte, 1) != 1)
        abort();
}

int main() {
    int to[2], from[2];
    char byte;
    if (pipe(to) || pipe(from))
        abort();
    // Before HIP starts: it does not support forked children.
    pid_t process = fork();
    if (process == 0) {
        close(to[1]);
        child(to[0], from[1]);
        return 0;
    }
    handles shared;
    hipEvent_t event;
    int *memory = device_ints(64), status;
    fill<<<1, 64>>>(memory);
    CHECK(hipEventCreateWithFlags(&event, hipEventDisableTiming | hipEventInterprocess));
    CHECK(hipIpcGetEventHandle(&shared.event, event));
    CHECK(hipEventRecord(event));
    CHECK(hipDeviceSynchronize());
    CHECK(hipIpcGetMemHandle(&shared.memory, memory));
    if (write(to[1], &shared, sizeof shared) != sizeof shared || read(from[0], &byte, 1) != 1)
        abort();
    waitpid(process, &status, 0);
    if (status)
        return 1;
    printf("parent: sum %d\n", sum(memory, 64));
    CHECK(hipEventDestroy(event));
    void *own, *again;
    printf("parent: own handle: %s\n", hipGetErrorString(hipIpcOpenMemHandle(&own, shared.memory, 1)));

    // Both GPUs lock the memory.
    static int registered[1024];
    CHECK(hipHostRegister(registered, sizeof registered, hipHostRegisterPortable));
    for (int device = 0; device < 2; device++) {
        CHECK(hipSetDevice(device));
        CHECK(hipHostGetDevicePointer(&again, registered, 0));
        fill<<<1, 64>>>((int *)again + 64 * device);
        CHECK(hipDeviceSynchronize());
    }
    CHECK(hipHostUnregister(registered));
    printf("parent: registered %d\n", registered[63] + registered[127]);
}
