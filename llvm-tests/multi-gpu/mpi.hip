// One process for each of four GPUs, as MPI programs do: each uses the GPU of its rank. One file for each process, or one
// that all add to. Nothing is lost or counted twice.
//
// REQUIRES: debian, gfx1100, sim
// RUN: %hip_cxx %device_pgo %exact -O2 -isystem /usr/lib/x86_64-linux-gnu/openmpi/include %s -o a -lmpi -lopen_mpi %take_devprof %devprof_a
// RUN: env 'HSA_SIM_AGENTS=gfx1100*4' LLVM_PROFILE_FILE=own/%%p.profraw %on_sim %{mpirun} ./a | FileCheck %s --check-prefix=RANKS
// RUN: %devprof merge own -o own.profdata | FileCheck %s --check-prefix=OWN
// RUN: %counts own.profdata | FileCheck %s
// RUN: env 'HSA_SIM_AGENTS=gfx1100*4' LLVM_PROFILE_FILE=pool/%%m.profraw %on_sim %{mpirun} ./a
// RUN: ls pool | count 1
// RUN: %counts pool/*.profraw | FileCheck %s
//
// A trace of all: the kernel of each rank ran on its GPU.
// RUN: %hip_cxx -O2 -isystem /usr/lib/x86_64-linux-gnu/openmpi/include %s -o b -lmpi -lopen_mpi
// RUN: env 'HSA_SIM_AGENTS=gfx1100*4' DEVPROF_TRACE=t.%%p.trace %on_sim %{mpirun} -x LD_PRELOAD=%devprof_so ./b
// RUN: %devprof stats t.*.trace --by agent --csv | FileCheck %s --check-prefix=TRACE
// RANKS: 4 processes, 6
// OWN:   {{^}}own.profdata: 4 files, 1 function, gfx1100;
// 64 * (1 + 2 + 3 + 4) threads.
// CHECK:     {{^}}_Z6kernelPi: [640, 160]{{$}}
// CHECK-NOT: {{.}}
// TRACE-DAG: "kernel(int*)",1,{{.*}},"GPU 0 gfx1100"
// TRACE-DAG: "kernel(int*)",1,{{.*}},"GPU 1 gfx1100"
// TRACE-DAG: "kernel(int*)",1,{{.*}},"GPU 2 gfx1100"
// TRACE-DAG: "kernel(int*)",1,{{.*}},"GPU 3 gfx1100"
#include "check.h"
#include <mpi.h>

__global__ void kernel(int *out) {
    if (threadIdx.x < 16)
        out[threadIdx.x] = 1;
}

int main(int count, char **words) {
    int rank, ranks, sum;
    if (MPI_Init(&count, &words) != MPI_SUCCESS)
        return 1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    CHECK(hipSetDevice(rank));
    kernel<<<rank + 1, 64>>>(device_ints(64));
    CHECK(hipDeviceSynchronize());
    MPI_Reduce(&rank, &sum, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d processes, %d\n", ranks, sum);
    return MPI_Finalize();
}
