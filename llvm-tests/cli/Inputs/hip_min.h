// What kernels need, without HIP's headers (-nogpuinc).
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
__device__ inline int threadIdx_x() { return __builtin_amdgcn_workitem_id_x(); }
extern "C" int hipLaunchKernel(const void *, int, int, void **, unsigned long, void *);
