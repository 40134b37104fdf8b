// The device's files are where LLVM_PROFILE_FILE or the compiler specifies: directories are created, patterns are
// expanded, and the architecture precedes the file's name. Compared with LLVM's own runtime. All patterns:
// file-names.test.
//
// RUN: %hip_cxx %pgo %exact -O2 %s -o a %devprof_a
// RUN: %hip_cxx %pgo %exact -O2 %s -o llvm
// RUN: env LLVM_PROFILE_FILE=new/deep/%%p-100%%%%.profraw ./a
// RUN: ls new/deep | FileCheck %s --check-prefix=PID
// RUN: ls -a . new new/deep | FileCheck %s --check-prefix=REST
//
// A pool: host and device are each merged over both runs. LLVM's runtime overwrites the device's file.
// RUN: env LLVM_PROFILE_FILE=pool/%%m.profraw ./a && env LLVM_PROFILE_FILE=pool/%%m.profraw ./a
// RUN: ls -A pool | FileCheck %s --check-prefix=POOL
// RUN: %counts pool/gfx1100.*.profraw | FileCheck %s --check-prefix=TWICE
// RUN: %if llvm-runtime %{ env LLVM_PROFILE_FILE=llvm-pool/%%m.profraw ./llvm && env LLVM_PROFILE_FILE=llvm-pool/%%m.profraw ./llvm %}
// RUN: %if llvm-runtime %{ ls -A llvm-pool | FileCheck %s --check-prefix=LLVM-POOL %}
// RUN: %if llvm-runtime %{ %counts llvm-pool/gfx1100*.profraw | FileCheck %s --check-prefix=ONCE %}
//
// The name from the compiler.
// RUN: %hip_cxx -fprofile-generate=made %exact -O2 %s -o b %devprof_a && ./b && ./b
// RUN: ls -A made | FileCheck %s --check-prefix=MADE
// RUN: %counts made/gfx1100.*.profraw | FileCheck %s --check-prefix=TWICE
//
// /dev/null. LLVM's runtime creates a file next to /dev/null.
// RUN: mkdir null && mknod null/null c 1 3
// RUN: env LLVM_PROFILE_FILE=null/null ./a 2>&1 | FileCheck %s --allow-empty --check-prefix=SILENT
// RUN: ls -A null | FileCheck %s --check-prefix=NULL
// RUN: %if llvm-runtime %{ env LLVM_PROFILE_FILE=null/null ./llvm %}
// RUN: %if llvm-runtime %{ ls -A null | FileCheck %s --check-prefix=LLVM-NULL %}
#include "check.h"

__global__ void kernel(int *out) { out[threadIdx.x] = 1; }

int main() {
    kernel<<<1, 64>>>(device_ints(64));
    CHECK(hipDeviceSynchronize());
}

// Like LLVM's host runtime, devprof does not support %%.
// PID:      {{^}}[[PID:[0-9]+]]-100.profraw{{$}}
// PID-NEXT: {{^}}gfx1100.[[PID]]-100.profraw{{$}}
// PID-NOT:  {{.}}
// REST-NOT: {{tmp|default}}

// POOL:      {{^}}[[HASH:[0-9]+]]_0.profraw{{$}}
// POOL-NEXT: {{^}}gfx1100.{{[0-9]+}}_0.profraw{{$}}
// POOL-NOT:  {{.}}
// The names of LLVM's runtime contain the target's features: gfx942:sramecc+:xnack-.
// LLVM-POOL:      {{^}}[[HASH:[0-9]+]]_0.profraw{{$}}
// LLVM-POOL-NEXT: {{^}}gfx1100{{(:[^.]*)?}}.{{[0-9]+}}_0.profraw{{$}}
// LLVM-POOL-NOT:  {{.}}

// MADE:      {{^}}default_{{[0-9]+}}_0.profraw{{$}}
// MADE-NEXT: {{^}}gfx1100.default_{{[0-9]+}}_0.profraw{{$}}
// MADE-NOT:  {{.}}

// TWICE: {{^}}_Z6kernelPi: [128]{{$}}
// ONCE:  {{^}}_Z6kernelPi: [64]{{$}}

// SILENT-NOT:     {{^}}devprof:
// NULL:           {{^}}null{{$}}
// NULL-NOT:       {{.}}
// LLVM-NULL:      {{^}}gfx1100{{(:[^.]*)?}}.null{{$}}
// LLVM-NULL-NEXT: {{^}}null{{$}}
