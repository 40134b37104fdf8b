// Two modules with the same symbol: the trace has the build ID of each kernel's module, if the modules are loaded one after the
// other. A module that is linked with the program has another kernel. The first launch loads its module.
//
// VARIANTS: plain+preload
// UNEQUAL: *: its trace tells modules apart by their numbers of registers, which depend on the kind of counters
// REQUIRES: cupti
// RUN: %{module} module.cu -DTIMES=1 -c -o out/1.cubin
// RUN: %{module} module.cu -DTIMES=2 -c -o out/2.cubin
// GPU: . $ROOT/lib/trace.sh
// GPU: ids() { for n in 1 2; do id=$("$ROOT/bin/devprof" inspect --json "$PROGRAM/$n.cubin" | sed -n 's/.*"build_id": *"\([0-9a-f]*\)".*/\1/p'); echo "kernels of $n.cubin: $(has "\"type\":\"kernel\".*\"symbol\":\"entry\",\"build_id\":\"$id\"")"; done; }
// GPU: dispatches() { sed -n 's/.*"type":"kernel","id":\([0-9]*\),.*"symbol":"entry".*/\1/p' "$name.jsonl" | while read -r id; do echo "dispatches: $(has "\"type\":\"dispatch\".*\"kernel\":$id,")"; done; }
// GPU: traced apart %a $PROGRAM/1.cubin $PROGRAM/2.cubin apart; ids; dispatches; echo "own: $(has '"type":"kernel".*own.*"build_id"')"
// GPU: traced together %a $PROGRAM/1.cubin $PROGRAM/2.cubin together; ids; dispatches
//
// CHECK: stdout: apart: exit status 0
// CHECK: stdout: kernels of 1.cubin: 1
// CHECK: stdout: kernels of 2.cubin: 1
// CHECK: stdout: dispatches: 2
// CHECK: stdout: dispatches: 4
// CHECK: stdout: own: 1
// CHECK: stdout: together: exit status 0
// CHECK: stdout: kernels of 1.cubin: 0
// CHECK: stdout: kernels of 2.cubin: 0
// Without build IDs, they are still two kernels, because they have different numbers of registers.
// CHECK: stdout: dispatches: 1
// CHECK: stdout: dispatches: 2
// The second process replaces the profiles of the first one: 64 + 2 × 64 threads, with one and two iterations.
// CHECK: sm_90*.profraw: entry: [192, 320]

//--- module.cu
extern "C" __global__ void entry(int *out) {
    for (int i = 0; i < TIMES; i++)
        out[threadIdx.x] += i;
}

//--- main.cu
#include "check.h"
#include <string.h>

__global__ void own(int *out) { out[0] = 1; }

static int *out;

static CUmodule load(const char *path) {
    CUmodule module;
    CHECK(cuModuleLoad(&module, path));
    return module;
}

static void run(CUmodule module, int times) {
    CUfunction function;
    void *arguments[] = {&out};
    CHECK(cuModuleGetFunction(&function, module, "entry"));
    for (int n = 0; n < times; n++)
        CHECK(cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, nullptr, arguments, nullptr));
    CHECK(cudaDeviceSynchronize());
}

int main(int argc, char **argv) {
    out = device_ints(64);
    own<<<1, 1>>>(out);
    if (!strcmp(argv[3], "together")) {
        CUmodule one = load(argv[1]), two = load(argv[2]);
        run(one, 1);
        run(two, 2);
        return 0;
    }
    for (int n = 0; n < 2; n++) {
        CUmodule one = load(argv[1]);
        run(one, 1);
        CHECK(cuModuleUnload(one));
        CUmodule two = load(argv[2]);
        run(two, 2);
        CHECK(cuModuleUnload(two));
    }
}
