// Four processes of mpirun with different amounts of work, and one file for each (%h, %p) or one for all (%m). After
// devprof merges their counts, nothing is lost or counted twice.
//
// REQUIRES: debian
// RUN: %hip_cxx %pgo %exact -O2 -isystem /usr/lib/x86_64-linux-gnu/openmpi/include %s -o a %devprof_a -lmpi -lopen_mpi
// RUN: env LLVM_PROFILE_FILE=own/%%h-%%p.profraw %{mpirun} ./a | FileCheck %s --check-prefix=RANKS
// RUN: %devprof merge own --by-arch -o own.profdata | FileCheck %s --check-prefix=OWN
// RUN: %counts own.gfx1100.profdata | FileCheck %s --check-prefix=DEVICE
// RUN: %counts own.host.profdata | FileCheck %s --check-prefix=HOST
//
// RUN: env LLVM_PROFILE_FILE=pool/%%m.profraw %{mpirun} ./a
// RUN: %devprof merge pool --by-arch -o pool.profdata | FileCheck %s --check-prefix=POOL
// RUN: %counts pool.gfx1100.profdata | FileCheck %s --check-prefix=DEVICE
// RUN: %counts pool.host.profdata | FileCheck %s --check-prefix=HOST
//
// These processes do not contain the archive: devprof preloads the shared library.
// RUN: %hip_cxx %device_pgo %exact -O2 -isystem /usr/lib/x86_64-linux-gnu/openmpi/include %s -o b -lmpi -lopen_mpi
//
// One `devprof cover` for all ranks, or a `devprof run` in each rank with a directory per node. A cover in each rank would replace
// the others' profiles, and is refused.
// RUN: %devprof cover --dir cover --summary-only -- %{mpirun} ./b | FileCheck %s --check-prefix=COVER
// RUN: %{mpirun} %devprof run --quiet --profile 'nodes/%%h/%%m.profraw' ./b && ls nodes/* | FileCheck %s --check-prefix=NODES
// RUN: %devprof merge nodes -o nodes.profdata && %counts nodes.profdata | FileCheck %s --check-prefix=DEVICE
// RUN: %devprof merge cover -o cover.profdata && %counts cover.profdata | FileCheck %s --check-prefix=DEVICE
// RUN: not %{mpirun} %devprof cover --dir same -- ./b 2>&1 | FileCheck %s --check-prefix=SAME
// COVER:      100 % {{.*}} all files, gfx1100
// NODES:      {{^}}gfx1100.{{[0-9]+}}_0.profraw
// NODES-NOT:  profraw
// SAME:       devprof: another devprof cover uses same now: name another directory with --dir. If mpirun or srun started one for each rank: start it once, `devprof cover -- mpirun …`, or start each rank with `devprof run --profile 'DIR/%h/%m.profraw'`, and then `devprof report BINARY --profile DIR`
#include "check.h"
#include <mpi.h>

__device__ __noinline__ int odd(int x) { return x % 2 ? 3 * x : x; }

__global__ void kernel(int *out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = odd(i);
}

__attribute__((noinline)) static void work(int rank) {
    kernel<<<rank + 1, 64>>>(device_ints(64 * (rank + 1)));
    CHECK(hipDeviceSynchronize());
}

int main(int count, char **words) {
    int rank, ranks, sum;
    if (MPI_Init(&count, &words) != MPI_SUCCESS)
        return 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    work(rank);
    MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d processes, %d\n", ranks, sum);
    return MPI_Finalize();
}

// RANKS: 4 processes, 6
// OWN:      {{^}}own.gfx1100.profdata: 4 files, 2 functions, gfx1100;
// OWN-NEXT: {{^}}own.host.profdata: 4 files, 3 functions, host;
// POOL:      {{^}}pool.gfx1100.profdata: 1 file, 2 functions, gfx1100;
// POOL-NEXT: {{^}}pool.host.profdata: 1 file, 3 functions, host;

// 64 * (1 + 2 + 3 + 4) threads.
// DEVICE:      {{^}}_Z3oddi: [640, 320]{{$}}
// DEVICE-NEXT: {{^}}_Z6kernelPi: [640]{{$}}
// DEVICE-NOT:  {{.}}
// HOST: {{^}}main: [4,
// HOST: {{.*}}_ZL4worki: [4,
