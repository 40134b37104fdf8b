// Kernels of one name in two files, of which one is launched. Without RDC each file has its own cubin, and the report reads
// each with its own profile. With RDC they are in one cubin, with different symbols.
//
// VARIANTS: preload archive rdc
// RUN: %{cu} main.cu -o main.o
// RUN: %{cu} first.cu -o first.o
// RUN: %{cu} second.cu -o second.o
// RUN: %{cxx} main.o first.o second.o -o out/a %{link}
//
// RDC-DAG: sm_90.default.profraw: _ZN12_GLOBAL__N_16kernelEPi__intern__{{[0-9a-f]*}}: [0, 0]
// RDC-DAG: sm_90.default.profraw: _ZN12_GLOBAL__N_16kernelEPi__intern__{{[0-9a-f]*}}: [64, 40]
// NO-RDC: sm_90*.default.profraw: _ZN12_GLOBAL__N_16kernelEPi: [64, 40]
// AFTER: %{FileCheck}
// AFTER: %devprof report %{program}/a --profile %{results} >report
// AFTER: FileCheck test --check-prefix=REPORT <report
// REPORT-DAG: {{^ *}}100 % {{.*}}kernel(int*) {{.*}}(first.cu:2)
// REPORT-DAG: {{^ *}}0 % {{.*}}kernel(int*) {{.*}}(second.cu:2) (never ran)

//--- first.cu
namespace {
__global__ void kernel(int *out) {
    if (threadIdx.x < 40)
        out[threadIdx.x] = 1;
}
}
void first(int *out) { kernel<<<1, 64>>>(out); }

//--- second.cu
namespace {
__global__ void kernel(int *out) {
    if (threadIdx.x < 40)
        out[threadIdx.x] = 2;
}
}
void second(int *out) { kernel<<<1, 64>>>(out); }

//--- main.cu
#include "check.h"

void first(int *out);
void second(int *out);

int main(int argc, char **argv) {
    int *out = device_ints(64);
    if (argc > 1)
        second(out);
    first(out);
    CHECK(cudaDeviceSynchronize());
}
