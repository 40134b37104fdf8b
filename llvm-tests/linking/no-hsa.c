// On a machine without HSA and HIP libraries an instrumented program that is linked with devprof runs as usual.
//
// REQUIRES: debian, model, root
// RUN: %clang -O2 %inputs/mounts.c -o mounts
// RUN: %clang -O2 -fprofile-instr-generate -fcoverage-mapping %s -o a %take_devprof %devprof_a
// RUN: ./mounts hide=/usr/lib/x86_64-linux-gnu/libhsa-runtime64.so.1 hide=/usr/lib/x86_64-linux-gnu/libamdhip64.so.7 -- ./a 2>&1 | FileCheck %s
// RUN: %counts default.profraw | FileCheck %s --check-prefix=COUNTS
// RUN: %clang -O2 %s -o b
// RUN: ./mounts hide=/usr/lib/x86_64-linux-gnu/libhsa-runtime64.so.1 hide=/usr/lib/x86_64-linux-gnu/libamdhip64.so.7 -- %preload ./b 2>&1 | FileCheck %s
#include <dlfcn.h>
#include <stdio.h>

int main(void) {
    if (dlopen("libhsa-runtime64.so.1", RTLD_NOW) || dlopen("libamdhip64.so.7", RTLD_NOW))
        puts("the libraries were found");
    puts("ran");
}

// CHECK-NOT: {{.}}
// CHECK:     {{^}}ran{{$}}
// CHECK-NOT: {{.}}

// COUNTS: {{^}}main: [1, 0
