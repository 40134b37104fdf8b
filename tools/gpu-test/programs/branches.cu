// 64 threads, of which 40 take the branch: the same counts at every optimization level, however the program is linked,
// and however devprof gets into it.
//
// VARIANTS: O0 O1 O2 O3 O0+rdc O2+rdc O2+lto static static+rdc inject inject+static archive archive+static archive+rdc
// VARIANTS: command command+static none none+static
// NONE-NOT: {{.}}
// COMMAND: stderr: devprof: 1 profile in {{.*}}: 1 code object, 1 function (1 ran), 104 counts in all
// COMMAND: stderr: devprof: next: devprof report {{[^ ]*}}/branches-{{[^ ]*}}/a --profile .{{$}}
// NO-NONE: sm_90.default.profraw: _Z6kernelPi: [64, 40]
#include "check.h"

__global__ void kernel(int *out) {
    if (threadIdx.x < 40)
        out[threadIdx.x] = 1;
}

int main() {
    kernel<<<1, 64>>>(device_ints(64));
    CHECK(cudaDeviceSynchronize());
}
