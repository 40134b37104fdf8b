// Instrumented kernels that read the memory of another GPU, copies between GPUs, and memory that several GPUs write to.
// Their counts are those of the GPU that runs them, and the results are right.
//
// REQUIRES: gfx1100, sim
// RUN: %hip_cxx %device_pgo %exact -O1 %s -o a %take_devprof %devprof_a
// RUN: env 'HSA_SIM_AGENTS=gfx1100*2' LLVM_PROFILE_FILE=p.x %on_sim ./a | FileCheck %s
// RUN: env 'HSA_SIM_AGENTS=gfx1100*2' HSA_SIM_BAR=large LLVM_PROFILE_FILE=large.x %on_sim ./a | FileCheck %s
// RUN: env 'HSA_SIM_AGENTS=gfx1100*2' HSA_SIM_L2=writeback LLVM_PROFILE_FILE=cached.x %on_sim ./a | FileCheck %s
// RUN: %counts gfx1100.p.x | FileCheck %s --check-prefix=FIRST
// RUN: %counts gfx1100.1.p.x | FileCheck %s --check-prefix=SECOND
// RUN: %counts gfx1100.large.x | FileCheck %s --check-prefix=FIRST
// RUN: %counts gfx1100.1.large.x | FileCheck %s --check-prefix=SECOND
// RUN: %counts gfx1100.cached.x | FileCheck %s --check-prefix=FIRST
// RUN: %counts gfx1100.1.cached.x | FileCheck %s --check-prefix=SECOND
//
// A trace has the copy from one GPU to the other, with its call.
// RUN: env 'HSA_SIM_AGENTS=gfx1100*2' LLVM_PROFILE_FILE=traced.x DEVPROF_TRACE=t.trace DEVPROF_TRACE_COPIES=1 %on_sim LD_PRELOAD=%devprof_so ./a | FileCheck %s
// RUN: %trace --copies t.trace | FileCheck %s --check-prefix=COPIES
// COPIES:      hsa_amd_memory_async_copy{{.*}} device-to-device 2>1{{.*}}: 1 copies, 4194304 bytes, 1 with times{{$}}
// COPIES-NEXT: calls: hipMemcpyPeer 1{{$}}
// COPIES-NEXT: dropped: 0 closed: 1{{$}}
//
// CHECK:     peer: 2016
// CHECK:     copied: 63
// CHECK:     shared: 64
// CHECK-NOT: {{.}}
// FIRST-DAG:  {{^}}_Z4fillPi: [0]{{$}}
// FIRST-DAG:  {{^}}_Z3addPKiPi: [64]{{$}}
// FIRST-DAG:  {{^}}_Z5countPi: [32, 16]{{$}}
// SECOND-DAG: {{^}}_Z4fillPi: [64]{{$}}
// SECOND-DAG: {{^}}_Z3addPKiPi: [0]{{$}}
// SECOND-DAG: {{^}}_Z5countPi: [32, 16]{{$}}
#include "check.h"

__global__ void fill(int *out) { out[threadIdx.x] = threadIdx.x; }

__global__ void add(const int *in, int *sum) { atomicAdd(sum, in[threadIdx.x]); }

__global__ void count(int *sum) {
    atomicAdd_system(sum, 1);
    if (threadIdx.x % 2)
        __threadfence_system();
}

int main() {
    CHECK(hipSetDevice(1));
    int *remote = device_ints(1 << 20);
    fill<<<1, 64>>>(remote);
    CHECK(hipDeviceSynchronize());

    CHECK(hipSetDevice(0));
    CHECK(hipDeviceEnablePeerAccess(1, 0));
    int *sum = device_ints(1), *copy = device_ints(1 << 20), result, last[64];
    CHECK(hipMemset(sum, 0, 4));
    add<<<1, 64>>>(remote, sum);
    CHECK(hipMemcpy(&result, sum, 4, hipMemcpyDeviceToHost));
    printf("peer: %d\n", result);

    CHECK(hipMemcpyPeer(copy, 0, remote, 1, 4 << 20));
    CHECK(hipMemcpy(last, copy, sizeof last, hipMemcpyDeviceToHost));
    printf("copied: %d\n", last[63]);

    int *both;
    CHECK(hipHostMalloc(&both, 4, hipHostMallocCoherent | hipHostMallocPortable));
    *both = 0;
    for (int device = 0; device < 2; device++) {
        CHECK(hipSetDevice(device));
        count<<<1, 32>>>(both);
    }
    for (int device = 0; device < 2; device++) {
        CHECK(hipSetDevice(device));
        CHECK(hipDeviceSynchronize());
    }
    printf("shared: %d\n", *both);
}
