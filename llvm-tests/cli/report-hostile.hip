// Names that contain HTML, a damaged profile, sampled counters, a binary that is not the one that ran, and
// arguments for which no report can be created.
//
// RUN: cp %s '<img src=x onerror=alert(1)>&"%%41.hip'
// RUN: %hip_cxx %pgo -O1 *.hip -o a %devprof_a && ./a
// RUN: head -c 200 gfx1100.default.profraw > gfx1100.1.cut.profraw
// RUN: not %devprof report a --profile . 2>&1 | FileCheck %s --check-prefix=SAMPLED
// RUN: sh -c '%devprof report a --profile . --allow-sampled -o out --format html,json,lcov 2> warnings; test $? = 3'
// RUN: FileCheck %s --check-prefix=WARNING < warnings
// RUN: %report json out/report.json | FileCheck %s
// RUN: %report pages out
// RUN: grep -q '^SF:.*/<img src=x onerror=alert(1)>&"%%41.hip$' out/lcov.info
//
// SAMPLED: devprof: a: {{.*}}: sampled build (1 block in 8): {{.*}} rebuild with -Xarch_device -mllvm=--offload-pgo-sampling=0, or accept it with --allow-sampled
// WARNING-DAG: devprof: {{.*}}gfx1100.1.cut.profraw: {{.+}}
// WARNING-DAG: devprof: Sampled build (1 block in 8) in the code objects: coverage is under-reported. Rebuild with `-Xarch_device -mllvm=--offload-pgo-sampling=0`.
//
// CHECK-DAG: warning: Not all of the profiles could be used.
// CHECK-DAG: {{^}}    {{.*}}gfx1100.1.cut.profraw: {{.+}}
// CHECK-DAG: warning: Sampled build (1 block in 8) in the code objects
// CHECK:     kernel void never<Number>(Number*) never-ran
// CHECK:     kernel compares(int*) covered calls=None count=32
// CHECK:     function Number::operator&() <img src=x onerror=alert(1)>&"%41.hip:[[#]] 32
// CHECK:     function operator<(Number const&, Number const&) <img src=x onerror=alert(1)>&"%41.hip:[[#]] 32
//
// A profile with counts that are all 0.
//
// RUN: %profdata merge -text gfx1100.default.profraw -o counts && awk '/Counter Values/ {on = 1; print; next} !/^[0-9]/ {on = 0} {print on ? 0 : $0}' counts > gfx1100.zero.proftext
// RUN: %devprof report a --allow-sampled --profile gfx1100.zero.proftext | FileCheck %s --check-prefix=ZERO
// ZERO: {{^}}No kernel of these binaries ran on gfx1100: all counts in its profile are 0
//
// After the program is changed and recompiled, the counts of functions with a different structure are lost. The functions
// stay in the totals. If all of them have a different structure, the profile is of another build.
//
// RUN: %hip_cxx %pgo -O1 -DCHANGED *.hip -o a %devprof_a
// RUN: sh -c '%devprof report a --allow-sampled --profile gfx1100.default.profraw > text; test $? = 3'
// RUN: FileCheck %s --check-prefix=TEXT < text
// TEXT:      Counts of functions of gfx1100 are lost, because the profile is from a different build: they are shown as not run.
// TEXT-NEXT: {{^}}    operator<(Number const&, Number const&){{$}}
// TEXT:      100 % {{.*}} compares(int*){{$}}
// TEXT:      2/4 {{.*}}.hip{{$}}
// RUN: sed '/Func Hash/ {n; s/$/1/}' counts > gfx1100.other.proftext
// RUN: not %devprof report a --allow-sampled --profile gfx1100.other.proftext 2>&1 | FileCheck %s --check-prefix=OTHER-BUILD
// OTHER-BUILD: devprof: the profile of gfx1100 is from a different build of a: no function has the same hash
//
// Errors.
//
// RUN: not %devprof report a --profile gfx1100.default.profraw --format html 2>&1 | FileCheck %s --check-prefix=WHERE
// WHERE: devprof: html, and more than one format, require a directory: name it with -o DIR
// RUN: not %devprof report a --profile gfx1100.1.cut.profraw 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: gfx1100.1.cut.profraw
// RUN: not %devprof report %devprof_so --profile gfx1100.default.profraw 2>&1 | FileCheck %s --check-prefix=CODE
// CODE: libdevprof.so: no GPU code objects found
#include "check.h"

struct Number {
    int value;
    __device__ int operator&() { return value; }
};

__device__ bool operator<(const Number &a, const Number &b) {
#ifdef CHANGED
    if (a.value == b.value)
        return false;
#endif
    return a.value < b.value;
}

__global__ void compares(int *out) {
    Number one = {(int)threadIdx.x}, two = {5};
    out[threadIdx.x] = (one < two) + &one;
}

template <class T> __global__ void never(T *out) { out->value = 1; }
template __global__ void never<Number>(Number *);

int main() {
    compares<<<1, 32>>>(device_ints(32));
    CHECK(hipDeviceSynchronize());
}
