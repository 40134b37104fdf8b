// CUDA code with the plugins. That the counts are the same is compared on a GPU (tools/bench/cuda).
//
// REQUIRES: cuda, debian
// RUN: %devprof flags --clang clang++-23 --cuda --no-runtime --arch sm_90 --module --coverage=counts --no-plugin > flags
// DEFINE: %{options} = -DDEVPROF_LISTS
// DEFINE: %{ptx} = sh -ec 'clang++-23 %cuda_headers -x cuda -w -S %s -o - $(cat flags) -O2 %{options}'
// DEFINE: %{kernel} =
// DEFINE: %{of} = awk '/^.visible .entry/ { on = /%{kernel}/ } on; /^}/ { on = 0 }'
// RUN: %{ptx} > plain.ptx
// REDEFINE: %{options} = -DDEVPROF_LISTS %compact
// RUN: %{ptx} > compact.ptx
// REDEFINE: %{options} = %hoist
// RUN: %{ptx} > hoist.ptx
//
// Small kernels stay as they are. In a large one, all updates are in lists. Updates of blocks that are entered together are in one.
// REDEFINE: %{kernel} = few
// RUN: %{of} plain.ptx > plain && %{of} compact.ptx | diff plain - && grep 'gpu.global.add.u64' plain
// REDEFINE: %{kernel} = many
// RUN: %{of} plain.ptx | grep -c 'gpu.global.add.u64' > before && %{of} compact.ptx | not grep 'gpu.global.add.u64'
// RUN: %{of} compact.ptx | grep -c 'call.uni __devprof_instrument_list,' > after
// RUN: python3 -c "before, after = (int(open(name).read()) for name in ('before', 'after')); print(before, after); exit(not 2 * after < before)"
// RUN: grep '__devprof_list.*\[[0-9][0-9]' compact.ptx && not grep __devprof_listed compact.ptx
//
// With debug information, without optimization, and with relocatable device code.
// REDEFINE: %{options} = -DDEVPROF_LISTS %compact -g
// RUN: %{ptx} | grep -c 'call.uni __devprof_instrument_list,'
// REDEFINE: %{options} = -DDEVPROF_LISTS %compact -O0
// RUN: %{ptx} | grep -c 'call.uni __devprof_instrument_list,'
// REDEFINE: %{options} = -DDEVPROF_LISTS %compact -fgpu-rdc
// RUN: %{ptx} | grep -c 'call.uni __devprof_instrument_list,'
//
// Where a kernel begins, one thread adds for its block. A loop without divergent branches asks once which lanes are active, in front of
// it, and another one in each iteration.
// REDEFINE: %{kernel} = few
// RUN: %{of} hoist.ptx | FileCheck %s --check-prefix=FEW
// FEW:     mov.u32 {{.*}}, %ntid.z;
// FEW-NOT: match.all
// REDEFINE: %{kernel} = uniform
// RUN: %{of} hoist.ptx | FileCheck %s --check-prefix=UNIFORM
// UNIFORM:       activemask
// UNIFORM:       Loop Header
// UNIFORM-NOT:   activemask
// UNIFORM:       bra
// UNIFORM:       redux.sync.add
// REDEFINE: %{kernel} = divergent
// RUN: %{of} hoist.ptx | FileCheck %s --check-prefix=DIVERGENT
// DIVERGENT:     Loop Header
// DIVERGENT-NOT: bra
// DIVERGENT:     activemask
#include <cuda_runtime.h>

template <int N> __device__ int chain(int value) {
    value = value % 3 == 0 ? value + N : value ^ N;
    return chain<N - 1>(value);
}
template <> __device__ int chain<0>(int value) { return value; }

__global__ void many(int *out) { out[threadIdx.x] = chain<30>(out[threadIdx.x]); }

__global__ void few(int *out) { out[threadIdx.x] += 5; }

__global__ void uniform(int *out, int n) {
    for (int i = 0; i < n; i++)
        out[threadIdx.x] = out[threadIdx.x] * out[threadIdx.x + 1];
}

__global__ void divergent(int *out, int n) {
    for (int i = 0; i < threadIdx.x; i++)
        out[threadIdx.x] = out[threadIdx.x] * out[threadIdx.x + 1];
}
