// With DEVPROF_TRACE_API=1 the trace has all calls of HIP, except those that HIP's functions make themselves: functions
// with all kinds of arguments (on the stack, floats, structures by value) and results (error codes, strings, numbers, a
// structure). Results are the same with a trace and without. By default the trace has only calls that launch, copy or
// fill. The status of a function that returns no error code is 0.
//
// RUN: %hip_cxx -O2 -Wno-deprecated-declarations %s -o a
// RUN: ./a > alone && FileCheck %s --check-prefix=RESULTS < alone
// RUN: %preload DEVPROF_TRACE=api.trace DEVPROF_TRACE_API=1 ./a > traced && diff alone traced
// RUN: %trace --calls api.trace > calls
// RUN: sed -n 's/^call //p' alone | diff - calls
// RUN: %preload DEVPROF_TRACE=default.trace ./a > traced && diff alone traced
// RUN: %trace --calls default.trace | FileCheck %s --check-prefix=DEFAULT --match-full-lines
// RUN: %preload DEVPROF_TRACE=default.trace DEVPROF_TRACE_API=0 ./a > traced && diff alone traced
// RUN: %trace --calls default.trace | FileCheck %s --check-prefix=DEFAULT --match-full-lines
// RUN: %preload DEVPROF_TRACE_API=1 ./a > traced && diff alone traced
//
// RESULTS:     hipErrorInvalidValue, invalid argument
// RESULTS:     channel 8 16 24 32 1
// RESULTS:     8 bytes
// RESULTS:     the sum is 64
// DEFAULT:      hipMemset 0
// DEFAULT-NEXT: hipMemsetAsync 0
// DEFAULT-NEXT: hipLaunchKernel 0 _Z6kernelPi
// DEFAULT-NEXT: hipMemcpy 0
// DEFAULT-NOT:  {{.}}
#include "check.h"
#include <string.h>

__global__ void kernel(int *out) { atomicAdd(out, 1); }

// Prints the line that trace.py prints for the call.
#define CALL(function, ...) called(#function, function(__VA_ARGS__))
static void called(const char *name, hipError_t status) {
    printf("call %s %d\n", name, status);
}

int main() {
    int device = -1, count = 0, value = 0;
    CALL(hipInit, 0);
    CALL(hipGetDeviceCount, &count);
    CALL(hipSetDevice, 0);
    CALL(hipGetDevice, &device);
    CALL(hipSetDevice, 99);
    CALL(hipPeekAtLastError);
    CALL(hipGetLastError);
    printf("%d of %d\n", device, count);

    // Strings.
    printf("call hipGetErrorName 0\ncall hipGetErrorString 0\n");
    const char *name = hipGetErrorName(hipErrorInvalidValue);
    printf("%s, %s\n", name, hipGetErrorString(hipErrorInvalidValue));
    // A structure, in memory.
    printf("call hipCreateChannelDesc 0\n");
    hipChannelFormatDesc channel = hipCreateChannelDesc(8, 16, 24, 32, hipChannelFormatKindUnsigned);
    printf("channel %d %d %d %d %d\n", channel.x, channel.y, channel.z, channel.w, channel.f);
    // A number.
    hipStream_t stream = NULL;
    CALL(hipStreamCreateWithFlags, &stream, hipStreamNonBlocking);
    printf("call hipGetStreamDeviceId 0\n");
    printf("device %d\n", hipGetStreamDeviceId(stream));
    // Floats, structures of 64 and of 8 bytes, many arguments.
    textureReference texture;
    CALL(hipTexRefSetMipmapLevelClamp, &texture, 1.5f, 2.5f);
    printf("%g %g\n", texture.minMipmapLevelClamp, texture.maxMipmapLevelClamp);
    hipIpcMemHandle_t handle;
    memset(&handle, 0, sizeof handle);
    void *opened = NULL;
    CALL(hipIpcOpenMemHandle, &opened, handle, 0);
    int *out = NULL;
    CALL(hipMallocManaged, (void **)&out, 64 * sizeof *out, hipMemAttachGlobal);
    CALL(hipMemAdvise_v2, out, 64 * sizeof *out, hipMemAdviseSetReadMostly, {hipMemLocationTypeDevice, 0});
    hipDeviceptr_t base = NULL;
    size_t size = 0;
    CALL(hipMemGetAddressRange, &base, &size, (char *)out + 8);
    printf("%td bytes\n", (char *)out + 8 - (char *)base);
    CALL(hipFree, out);

    CALL(hipMalloc, (void **)&out, 64 * sizeof *out);
    CALL(hipMemset, out, 0, 64 * sizeof *out);
    CALL(hipMemsetAsync, out, 0, 4, stream);
    CALL(hipDeviceSynchronize);
    hipEvent_t event;
    float time = -1;
    CALL(hipEventCreate, &event);
    printf("call hipLaunchKernel 0 _Z6kernelPi\n");
    void *arguments[] = {&out};
    CHECK(hipLaunchKernel((const void *)kernel, dim3(1), dim3(64), arguments, 0, stream));
    CALL(hipEventRecord, event, stream);
    CALL(hipEventSynchronize, event);
    CALL(hipEventQuery, event);
    CALL(hipEventElapsedTime, &time, event, event);
    CALL(hipEventDestroy, event);
    CALL(hipMemcpy, &value, out, sizeof value, hipMemcpyDeviceToHost);
    CALL(hipStreamDestroy, stream);
    CALL(hipFree, out);
    CALL(hipDeviceReset);
    printf("the sum is %d, %g ms\n", value, time);
    return 0;
}
