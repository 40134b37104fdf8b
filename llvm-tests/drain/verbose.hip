// With LLVM_PROFILE_VERBOSE, each drain prints what it has found, in lines of the form that LLVM's runtime prints: the
// bytes of counters, uniform counters and records that were copied, the GPUs, the code objects on them, those with
// counters, those whose counters were copied, and how many of HSA's iterations failed. Also if there is none. It also
// prints where HIP is and how it was found. Without the variable, nothing is printed.
//
// REQUIRES: gfx1100, llvm-runtime, sim
// RUN: %hip_cxx %pgo %exact -O2 %s -o a %devprof_a
// RUN: ./a kernel 2>&1 | FileCheck %s --check-prefix=QUIET --allow-empty
// QUIET-NOT: {{.}}
//
// RUN: env LLVM_PROFILE_VERBOSE=1 ./a kernel 2>&1 | grep devprof: | FileCheck %s --check-prefixes=COLLECT,EXIT
// RUN: env LLVM_PROFILE_VERBOSE=1 %preload ./a kernel 2>&1 | grep devprof: | FileCheck %s --check-prefixes=COLLECT,EXIT
// COLLECT:      {{^}}devprof: HIP is /{{.*}}/libamdhip64.so.7{{.*}}, found by its name{{$}}
// COLLECT-NEXT: {{^}}devprof: Copied device sections: 104 bytes{{$}}
// COLLECT-NEXT: {{^}}devprof: HSA walk complete: agents=1 pairs=[[#%u,PAIRS:]] found=1 drained=1 iter-failures=0{{$}}
// COLLECT-NEXT: {{^}}devprof: 1 records of gfx1100 to {{.*}}/gfx1100.default.profraw{{$}}
// The host's runtime calls the collect function when it writes the host's file, after devprof's own exit handler.
// EXIT-NEXT:    {{^}}devprof: HIP is /{{.*}}/libamdhip64.so.7{{.*}}, found by its name{{$}}
// EXIT-NEXT:    {{^}}devprof: Copied device sections: 104 bytes{{$}}
// EXIT-NEXT:    {{^}}devprof: HSA walk complete: agents=1 pairs=[[#PAIRS]] found=1 drained=1 iter-failures=0{{$}}
//
// RUN: env LLVM_PROFILE_VERBOSE=1 ./a none 2>&1 | grep devprof: | FileCheck %s --check-prefix=NONE
// NONE:      {{^}}devprof: Copied device sections: 0 bytes{{$}}
// NONE-NEXT: {{^}}devprof: HSA walk complete: agents=1 pairs={{[0-9]+}} found=0 drained=0 iter-failures=0{{$}}
//
// Two GPUs, of which one has a code object; the same with an invalid code object.
// RUN: %clang -O1 -Wall -I%inputs %repo/llvm-tests/simulator/run.c -o s -lhsa-runtime64
// DEFINE: %{sim} = %on_sim "HSA_SIM_AGENTS=gfx1100*2" HSA_TOOLS_LIB=%devprof_so LLVM_PROFILE_VERBOSE=1
// RUN: %{sim} ./s %fixtures/counted.raw11.co stay 2>&1 | FileCheck %s --check-prefix=TWO
// RUN: %corrupt backwards %fixtures/counted.raw11.co bad.co && %{sim} ./s bad.co stay 2>&1 | FileCheck %s --check-prefix=INVALID
// TWO:      {{^}}devprof: HIP is not loaded{{$}}
// TWO-NEXT: {{^}}devprof: Copied device sections: 312 bytes{{$}}
// TWO-NEXT: {{^}}devprof: HSA walk complete: agents=2 pairs=1 found=1 drained=1 iter-failures=0{{$}}
// INVALID:      {{^}}devprof: Copied device sections: 0 bytes{{$}}
// INVALID-NEXT: {{^}}devprof: HSA walk complete: agents=2 pairs=1 found=1 drained=0 iter-failures=0{{$}}
//
// HSA does not list the symbols.
// RUN: %{sim} "HSA_SIM_PLAN=hsa_executable_iterate_agent_symbols * fail ERROR_OUT_OF_RESOURCES" ./s %fixtures/counted.raw11.co stay 2>&1 | FileCheck %s --check-prefix=FAILED
// FAILED:      {{^}}devprof: cannot read the symbols of executable 0x{{[0-9a-f]+}} on gfx1100: hsa_executable_iterate_agent_symbols failed: {{.*}}
// FAILED:      {{^}}devprof: HSA walk complete: agents=2 pairs=1 found=0 drained=0 iter-failures=1{{$}}
#include "check.h"
#include <string.h>

__global__ void branch(int *out) {
    if (threadIdx.x % 2 == 0)
        out[threadIdx.x] = 1;
}

int main(int argc, char **argv) {
    int count;
    CHECK(hipGetDeviceCount(&count));
    if (argc > 1 && !strcmp(argv[1], "kernel")) {
        branch<<<1, 64>>>(device_ints(64));
        CHECK(hipDeviceSynchronize());
    }
}
