// devprof run --model: the number and the architectures of the simulated GPUs, and what is refused.
//
// REQUIRES: debian, gfx1100, model, sim
// DEFINE: %{run} = env -u HSA_MODEL_LIB -u HSA_MODEL_TOPOLOGY -u HSA_ENABLE_INTERRUPT -u HSA_ENABLE_SDMA -u LD_PRELOAD %target/prefix/bin/devprof run
// RUN: %hip_cxx -O1 %s -o a
// RUN: %{run} --model ./a 2>&1 | FileCheck %s --check-prefix=ONE
// RUN: %{run} --model --gpus 3 --arch gfx90a ./a 2>&1 | FileCheck %s --check-prefix=THREE
// RUN: %{run} --model --gpus 3 --arch gfx1100,gfx942 ./a 2>&1 | FileCheck %s --check-prefix=TWO
// ONE:        devprof: the GPU is a simulated gfx1100 (devprof's simulator)
// ONE-NEXT:   {{^}}gfx1100{{$}}
// ONE-NEXT:   devprof: no counters
// THREE:      devprof: the 3 GPUs are simulated: gfx90a (devprof's simulator)
// THREE-NEXT: {{^}}gfx90a
// THREE-NEXT: {{^}}gfx90a
// THREE-NEXT: {{^}}gfx90a
// THREE-NEXT: devprof: no counters
// TWO:        devprof: the 3 GPUs are simulated: gfx1100, gfx942 (devprof's simulator)
// TWO-NEXT:   {{^}}gfx1100{{$}}
// TWO-NEXT:   {{^}}gfx942
// TWO-NEXT:   {{^}}gfx1100{{$}}
//
// RUN: not %{run} --model --arch gfx999 ./a 2>&1 | FileCheck %s --check-prefix=ARCH
// RUN: not %{run} --model=rocr --arch gfx942 ./a 2>&1 | FileCheck %s --check-prefix=ROCR-ARCH
// RUN: not %{run} --model=rocr --gpus 2 ./a 2>&1 | FileCheck %s --check-prefix=ROCR-GPUS
// RUN: not %{run} --gpus 2 ./a 2>&1 | FileCheck %s --check-prefix=GPUS
// ARCH:      devprof: --arch gfx999: the simulator has gfx1100, {{.*}}gfx942
// ROCR-ARCH: devprof: --arch gfx942: --model=rocr has gfx1100
// ROCR-GPUS: devprof: --model=rocr has one GPU: use --model for several
// GPUS:      --model
#include "check.h"

int main() {
    int devices;
    CHECK(hipGetDeviceCount(&devices));
    for (int device = 0; device < devices; device++) {
        hipDeviceProp_t properties;
        CHECK(hipGetDeviceProperties(&properties, device));
        puts(properties.gcnArchName);
    }
}
