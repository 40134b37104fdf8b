// Copies of HIP programs: each is recorded once, as a copy of HSA or as a kernel of HIP, with its API call.
//
// RUN: %hip_cxx -O2 %s -o p -lamdhip64
// RUN: bash %S/Inputs/same off %devprof_so ./p > off.out
// RUN: env DEVPROF_TRACE_COPIES=1 bash %S/Inputs/same on %devprof_so %preload ./p > on.out
// RUN: diff off.out on.out && FileCheck %s < on.out
// RUN: %trace --copies on.trace | FileCheck %s --check-prefix=TRACE
// RUN: %trace --copies off.trace | FileCheck %s --check-prefix=OFF
//
// CHECK:      right: 24
// CHECK-NEXT: exit: 0
//
// Pinned memory from and to the device, and small pageable memory; HIP copies on the device with kernels, and the test
// does not depend on which functions and sizes it chooses for which copies.
// TRACE-DAG:  {{^}}hsa_amd_memory_async_copy{{.*}} device-to-host 1>0{{.*}} copies, [[#]] bytes, [[#]] with times{{$}}
// TRACE-DAG:  {{^}}hsa_amd_memory_async_copy{{.*}} host-to-device 0>1{{.*}} copies, [[#]] bytes, [[#]] with times{{$}}
// TRACE:      {{^}}calls: hipMemcpy {{[1-9][0-9]*}} hipMemcpyAsync {{[1-9][0-9]*}}{{$}}
// TRACE-NEXT: {{^}}dropped: 0 closed: 1{{$}}
// OFF:        {{^}}calls:{{$}}
#include "check.h"
#include <string.h>
#include <vector>

static const size_t N = 1 << 20;

int main() {
    char *device, *other, *pinned;
    std::vector<char> pageable(N), expected(N);
    hipStream_t stream;
    CHECK(hipMalloc(&device, N));
    CHECK(hipMalloc(&other, N));
    CHECK(hipHostMalloc(&pinned, N, 0));
    CHECK(hipStreamCreate(&stream));
    int right = 0;
    for (size_t size : {64ul, 4096ul, 100000ul, N}) {
        for (int round = 0; round < 3; ++round) {
            for (size_t n = 0; n < size; ++n)
                expected[n] = n * 3 + size + round;
            memcpy(pinned, expected.data(), size);
            CHECK(hipMemcpyAsync(device, pinned, size, hipMemcpyHostToDevice, stream));
            CHECK(hipMemcpyAsync(other, device, size, hipMemcpyDeviceToDevice, stream));
            CHECK(hipStreamSynchronize(stream));
            memset(pinned, 0, size);
            CHECK(hipMemcpyAsync(pinned, other, size, hipMemcpyDeviceToHost, stream));
            CHECK(hipStreamSynchronize(stream));
            right += !memcmp(pinned, expected.data(), size);

            CHECK(hipMemset(device, 0, size));
            CHECK(hipMemcpy(device, expected.data(), size, hipMemcpyHostToDevice));
            CHECK(hipMemcpy(pageable.data(), device, size, hipMemcpyDeviceToHost));
            right += !memcmp(pageable.data(), expected.data(), size);
        }
    }
    printf("right: %d\n", right);
}
