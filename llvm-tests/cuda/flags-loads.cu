// How the plugin that keeps flags in registers loads them on an NVIDIA GPU. A file that is not linked with others aligns its flags, and
// loads several at once. In relocatable device code, the linker may take those of templates and inline functions from another file,
// which does not align them: they are loaded byte by byte. Flags of a function that is only in this file are aligned.
//
// REQUIRES: cuda, debian
// DEFINE: %{ptx} = clang++-23 %cuda_headers -x cuda --offload-arch=sm_90 -Wno-unknown-cuda-version --cuda-path=%cuda_path -O2 \
// DEFINE:     -Xclang -fprofile-instrument=clang -Xclang -fcoverage-mapping -include %repo/src/device/device-rt/cuda.h %flags %keep_flags --offload-device-only -S %s -o
// RUN: %{ptx} alone.ptx && FileCheck %s --check-prefixes=CHECK,ALONE < alone.ptx
// RUN: %{ptx} linked.ptx -fgpu-rdc && FileCheck %s --check-prefixes=CHECK,LINKED < linked.ptx
#include <cuda_runtime.h>

// CHECK-DAG:  .align 4 .b8 __profc__Z4onlyPi[3]
// ALONE-DAG:  .align 4 .b8 __profc__Z6sharedIiEvPT_[5]
// LINKED-DAG: .align 1 .b8 __profc__Z6sharedIiEvPT_[5]

// CHECK:      .entry _Z4onlyPi(
// CHECK:      ld.global.b16 {{.*}}[__profc__Z4onlyPi];
// CHECK-NEXT: ld.global.b8 {{.*}}[__profc__Z4onlyPi+2];
__global__ void only(int *out) {
    if (out[3] == 1)
        out[4]++;
}

// CHECK:      .entry _Z6sharedIiEvPT_(
// CHECK-NOT:  [__profc_
// ALONE:      ld.global.b32 {{.*}}[__profc__Z6sharedIiEvPT_];
// ALONE:      ld.global.b8 {{.*}}[__profc__Z6sharedIiEvPT_+4];
// LINKED-DAG: ld.global.b8 {{.*}}[__profc__Z6sharedIiEvPT_];
// LINKED-DAG: ld.global.b8 {{.*}}[__profc__Z6sharedIiEvPT_+1];
// LINKED-DAG: ld.global.b8 {{.*}}[__profc__Z6sharedIiEvPT_+2];
// LINKED-DAG: ld.global.b8 {{.*}}[__profc__Z6sharedIiEvPT_+3];
// LINKED-DAG: ld.global.b8 {{.*}}[__profc__Z6sharedIiEvPT_+4];
// CHECK-NOT:  ld.global{{.*}}[__profc_
// CHECK:      ret;
template <class T> __global__ void shared(T *out) {
    if (out[0] > 2)
        out[1] = 5;
    if (out[3] == 1)
        out[4]++;
}
template __global__ void shared<int>(int *);
