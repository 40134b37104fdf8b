// devprof merge: raw profiles of two versions, of host and device, and merged profiles in one call. Each is read by an
// llvm-profdata that supports its version. The counts are the same as with llvm-profdata alone. Damaged files are
// reported and left out.
//
// REQUIRES: debian
// RUN: %hip_cxx %pgo %exact -O2 %s -o a %devprof_a
// RUN: %hip_cxx22 %pgo -fprofile-update=atomic -O2 %device_rt22 %s -o a22 %take_devprof %devprof_a
// RUN: env LLVM_PROFILE_FILE=many/%%p.profraw sh -c './a & ./a & ./a & wait'
// RUN: env LLVM_PROFILE_FILE=old/old.profraw ./a22
//
// Three processes: the output has the same bytes as llvm-profdata's.
// RUN: %devprof merge many/gfx1100.* -o device.profdata | FileCheck %s --check-prefix=DEVICE
// RUN: %profdata merge many/gfx1100.* -o same.profdata && cmp device.profdata same.profdata
// RUN: %counts device.profdata | FileCheck %s --check-prefix=THREE
// RUN: %devprof merge 'many/[0-9]*.profraw' -o host.profdata | FileCheck %s --check-prefix=HOST
// RUN: %profdata merge many/[0-9]*.profraw -o same.profdata && cmp host.profdata same.profdata
//
// Two raw versions, and an already merged profile. The older llvm-profdata runs first. The newer one reads its output.
// RUN: ls many/gfx1100.* old/gfx1100.* >list
// RUN: %devprof merge @list host.profdata -o both.profdata | FileCheck %s --check-prefix=BOTH
// RUN: %counts both.profdata | FileCheck %s --check-prefix=SUM
// RUN: %devprof merge old -o old.profdata --by-arch | FileCheck %s --check-prefix=OLD
// RUN: %counts22 old.gfx1100.profdata | FileCheck %s --check-prefix=ONE
//
// A function that is compiled for host and GPU has one name and hash: in a common file, its counts are added.
// RUN: %devprof merge many -o all.profdata 2>&1 | FileCheck %s --check-prefix=ALL
// RUN: %counts all.profdata | FileCheck %s --check-prefix=ADDED
// RUN: %devprof merge many -o arch.profdata --by-arch | FileCheck %s --check-prefix=ARCH
// RUN: cmp arch.gfx1100.profdata device.profdata && cmp arch.host.profdata host.profdata
//
// If the profile goes to stdout, the summary goes to stderr. Stdout cannot take several files.
// RUN: %devprof merge many/gfx1100.* -o - 2>pipe.err | cat >pipe.profdata && cmp pipe.profdata device.profdata
// RUN: FileCheck %s --check-prefix=STDOUT --input-file pipe.err
// RUN: not %devprof merge many --by-arch -o - 2>&1 | FileCheck %s --check-prefix=APART
//
// Only one llvm-profdata is available.
// RUN: not %devprof merge old --llvm /usr/lib/llvm-23 -o no.profdata 2>&1 | FileCheck %s --check-prefix=MISSING
//
// Files that are damaged, empty, missing or not profiles.
// RUN: mkdir bad && head -c 300 old/gfx1100.old.profraw >bad/short.profraw && touch bad/empty.profraw
// RUN: cp %s bad/source.profraw && mkdir bad/none && mkfifo bad/pipe.profraw
// RUN: sh -c '%devprof merge many/gfx1100.* bad/none bad missing -o part.profdata >part 2>part.err; test $? = 3'
// RUN: FileCheck %s --check-prefix=BAD --input-file part.err && FileCheck %s --check-prefix=DEVICE --input-file part
// RUN: cmp part.profdata device.profdata
// RUN: not %devprof merge --strict many bad -o strict.profdata 2>&1 | FileCheck %s --check-prefix=STRICT
// RUN: not %devprof merge bad -o nothing.profdata 2>&1 | FileCheck %s --check-prefix=NOTHING
// RUN: cp same.profdata in.profdata && not %devprof merge in.profdata many -o in.profdata 2>&1 | FileCheck %s --check-prefix=INPUT
// RUN: cmp in.profdata same.profdata && not ls strict.profdata && not ls nothing.profdata
#include "check.h"

__host__ __device__ __noinline__ int twice(int x) { return 2 * x; }

__global__ void kernel(int *out) {
    int i = threadIdx.x;
    if (i % 4 == 0)
        out[i] = twice(i);
}

int main() {
    kernel<<<3, 64>>>(device_ints(64));
    CHECK(hipDeviceSynchronize());
    return twice(5) - 10;
}

// DEVICE: {{^}}{{device|part}}.profdata: 3 files, 2 functions, gfx1100; llvm-profdata 23.{{[0-9.]+}} ({{.*}}/llvm-profdata){{$}}
// HOST:   {{^}}host.profdata: 3 files, 3 functions, host; llvm-profdata 23
// BOTH:   {{^}}both.profdata: 5 files, 4 functions, gfx1100 and unknown; llvm-profdata 22.{{.*}} and llvm-profdata 23.
// OLD:      {{^}}old.gfx1100.profdata: 1 file, 2 functions, gfx1100; llvm-profdata 22.
// OLD-NEXT: {{^}}old.host.profdata: 1 file, 3 functions, host; llvm-profdata 22.
// ALL:      {{^}}devprof: all.profdata: 1 function is in gfx1100 and host, {{.*}} added. --by-arch keeps them apart{{$}}
// ALL-NEXT: {{^}}all.profdata: 6 files, 4 functions, gfx1100 and host; llvm-profdata 23.
// ARCH:      {{^}}arch.gfx1100.profdata: 3 files, 2 functions, gfx1100; llvm-profdata 23.
// ARCH-NEXT: {{^}}arch.host.profdata: 3 files, 3 functions, host; llvm-profdata 23.
// STDOUT: {{^}}-: 3 files, 2 functions, gfx1100; llvm-profdata 23.
// APART: devprof: --by-arch cannot write files next to -: name a file with -o, or leave out --by-arch

// ONE:        {{^}}_Z5twicei: [48]{{$}}
// ONE-NEXT:   {{^}}_Z6kernelPi: [192, 48]{{$}}
// THREE:      {{^}}_Z5twicei: [144]{{$}}
// THREE-NEXT: {{^}}_Z6kernelPi: [576, 144]{{$}}
// ADDED:      {{^}}_Z5twicei: [147]{{$}}
// ADDED-NEXT: {{^}}_Z6kernelPi: [576, 144]{{$}}
// SUM:        {{^}}_Z5twicei: [195]{{$}}
// SUM-NEXT:   {{^}}_Z6kernelPi: [768, 192]{{$}}

// MISSING: no llvm-profdata reads raw profiles of version 10 in /usr/lib/llvm-23 ({{.*}} reads version 11); use LLVM 22's

// BAD:      devprof: bad/none: no .profraw files in this directory tree; left out
// BAD-NEXT: devprof: missing: No such file
// BAD-NEXT: devprof: bad/empty.profraw: empty file
// BAD-NEXT: devprof: bad/pipe.profraw: not a regular file; left out
// BAD-NEXT: devprof: bad/short.profraw: at byte 0x{{[0-9a-f]+}}: names extend past the end of the file (300 bytes); left out
// BAD-NEXT: devprof: bad/source.profraw: llvm-profdata: {{.*}}; left out
// BAD-NOT:  {{.}}
// STRICT: devprof: bad/short.profraw: at byte
// STRICT: devprof: nothing was written: --strict does not allow leaving out files
// NOTHING: devprof: llvm-profdata refused all of the profiles
// INPUT: devprof: cannot write in.profdata: it is one of the profiles to merge; name another with -o
