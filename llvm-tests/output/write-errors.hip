// If the file cannot be written, this is reported, the collect call returns -1, the program ends as it would without
// devprof, and no incomplete file with a profile's name is left.
//
// REQUIRES: debian, root
// RUN: mkdir dir && touch file
// RUN: %clang -O2 %inputs/mounts.c -o mounts
// RUN: %hip_cxx %device_pgo %exact -O1 %s -o a %take_devprof %devprof_a
//
// A directory that is a file; one that is read-only; a full disk; a disk that becomes full while the file is written;
// a name that is too long.
// RUN: env LLVM_PROFILE_FILE=file/x.profraw ./a 2>&1 | FileCheck %s
// RUN: ./mounts readonly=dir -- env LLVM_PROFILE_FILE=dir/x.profraw ./a 2>&1 | FileCheck %s
// RUN: ./mounts full=dir -- sh -c 'LLVM_PROFILE_FILE=dir/x.profraw ./a 2>&1; ls -A dir' | FileCheck %s --check-prefixes=CHECK,FULL
// RUN: ./mounts small=dir -- sh -c 'LLVM_PROFILE_FILE=dir/x.profraw ./a 2>&1; ls -A dir' | FileCheck %s --check-prefixes=CHECK,FULL
// RUN: env LLVM_PROFILE_FILE=%{long}.profraw ./a 2>&1 | FileCheck %s
// RUN: ls -A . dir | FileCheck %s --check-prefix=LEFT
//
// The file of an earlier run stays unchanged. LLVM's runtime leaves a part of the new one.
// RUN: %hip_cxx %pgo %exact -O1 -DNO_COLLECT %s -o llvm
// RUN: ./mounts small=dir -- sh -c 'echo old > dir/gfx1100.x; LLVM_PROFILE_FILE=dir/x ./a; wc -c dir/gfx1100.x' > out 2>&1
// RUN: FileCheck %s --check-prefixes=CHECK,OLD < out
// RUN: ./mounts small=dir -- sh -c 'echo old > dir/gfx1100.x; LLVM_PROFILE_FILE=dir/x ./llvm; wc -c dir/gfx1100.x' > out 2>&1
// RUN: %if llvm-runtime && gfx1100 %{ FileCheck %s --check-prefix=LLVM-OLD < out %}
//
// The same without a collect call, with the shared library: the exit status stays the same.
// RUN: %hip_cxx %device_pgo %exact -O1 -DNO_COLLECT %s -o b
// RUN: env LLVM_PROFILE_FILE=file/x.profraw %preload ./b 2>&1 | FileCheck %s --check-prefix=EXIT
//
// Continuous mode is not supported for devices: one warning, and the file is written.
// RUN: env LLVM_PROFILE_FILE=c%%c.profraw ./a 2>&1 | FileCheck %s --check-prefix=CONTINUOUS
// RUN: ls | FileCheck %s --check-prefix=CONTINUOUS-FILE
#include "check.h"

extern "C" int __llvm_profile_hip_collect_device_data(void);

// Enough functions to make the profile larger than a page.
template <int N> __global__ void kernel(int *out) { out[threadIdx.x] = N; }

template <int... N> struct numbers {};
template <int N, int... M> struct below : below<N - 1, N - 1, M...> {};
template <int... M> struct below<0, M...> { typedef numbers<M...> type; };

template <int... N> static void launch_all(numbers<N...>) {
    int *out = device_ints(32);
    ((kernel<N><<<1, 32>>>(out)), ...);
}

int main() {
    launch_all(below<70>::type());
    CHECK(hipDeviceSynchronize());
#ifndef NO_COLLECT
    int result = __llvm_profile_hip_collect_device_data();
    fprintf(stderr, "collect: %d\n", result);
#endif
    fprintf(stderr, "end of main\n");
}

// CHECK:      devprof: {{.*(cannot|name too long).*}}
// CHECK:      collect: -1
// CHECK-NEXT: end of main

// FULL:     {{^}}filler{{$}}
// FULL-NOT: {{.}}

// OLD:      4 dir/gfx1100.x
// LLVM-OLD: 4096 dir/gfx1100.x

// LEFT-NOT: profraw
// LEFT-NOT: .devprof

// EXIT: end of main
// EXIT: devprof: {{.*}}cannot

// CONTINUOUS:     devprof: {{.*}}%c
// CONTINUOUS-NOT: %c
// CONTINUOUS:     collect: 0

// CONTINUOUS-FILE: {{^}}gfx1100.c.profraw{{$}}
