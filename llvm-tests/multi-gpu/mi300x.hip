// A stock HIP program for gfx942 on eight simulated MI300X, by one command: the merged profile and the report have the
// counts of all of them.
//
// REQUIRES: debian, gfx1100, model, sim
// DEFINE: %{devprof} = env -u HSA_MODEL_LIB -u HSA_MODEL_TOPOLOGY -u HSA_ENABLE_INTERRUPT -u HSA_ENABLE_SDMA -u LD_PRELOAD %target/prefix/bin/devprof
// RUN: bash -euc 'clang++-23 %hip_headers -x hip -I%inputs -O2 %s $(%target/prefix/bin/devprof flags --coverage=counts --arch gfx942 --clang clang++-23) -o a'
// RUN: %{devprof} run --model --gpus 8 --arch gfx942 --profile out/ --trace t.trace ./a 2>&1 | FileCheck %s
// RUN: %{devprof} report ./a --profile out | FileCheck %s --check-prefix=REPORT
// RUN: %{devprof} stats t.trace | FileCheck %s --check-prefix=STATS
// CHECK:      devprof: the 8 GPUs are simulated: gfx942 (devprof's simulator)
// CHECK-NEXT: sum: 36
// CHECK-NEXT: devprof: 1 profile in out: 1 code object, 1 function (1 ran), 520 counts in all
// CHECK-NEXT: devprof: the trace t.trace: {{[0-9]+}} dispatches of {{[1-4]}} kernels on 8 GPUs
// REPORT: 100 %  4/4     100 %  2/2  kernel(int*, int)
// STATS:  {{^}}    8 {{.*}}  kernel(int*, int)
//
// The groups are in the order of HIP's numbers, with the architecture.
// RUN: %{devprof} stats t.trace --by agent --kernel '^kernel' | FileCheck %s --check-prefix=GROUPS
// GROUPS:           {{^}}GPU 0 gfx942{{$}}
// GROUPS-NEXT:      {{^}}    1 {{.*}}  kernel(int*, int)
// GROUPS:           {{^}}GPU 1 gfx942{{$}}
// GROUPS-COUNT-5:   {{^}}GPU {{[2-6]}} gfx942{{$}}
// GROUPS:           {{^}}GPU 7 gfx942{{$}}
// GROUPS-NOT:       GPU
//
// With caches that do not see what the host writes: HIP writes the arguments of kernels through the BAR.
// RUN: env HSA_SIM_L2=writeback %{devprof} run --model --gpus 8 --arch gfx942 --profile cached/ ./a 2>&1 | FileCheck %s --check-prefix=CACHED
// CACHED:      devprof: the 8 GPUs are simulated
// CACHED-NEXT: sum: 36
// CACHED-NEXT: devprof: 1 profile in cached: 1 code object, 1 function (1 ran), 520 counts in all
#include "check.h"

__global__ void kernel(int *out, int device) {
    if (threadIdx.x == unsigned(device))
        atomicAdd(out, device + 1);
}

int main() {
    int devices, sum = 0;
    CHECK(hipGetDeviceCount(&devices));
    for (int device = 0; device < devices; device++) {
        CHECK(hipSetDevice(device));
        int *out = device_ints(1), result;
        CHECK(hipMemset(out, 0, 4));
        kernel<<<1, 64>>>(out, device);
        CHECK(hipMemcpy(&result, out, 4, hipMemcpyDeviceToHost));
        sum += result;
    }
    printf("sum: %d\n", sum);
}
