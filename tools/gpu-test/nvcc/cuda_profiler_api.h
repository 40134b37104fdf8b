// NVIDIA's samples include this header, which the toolkit of tools/cuda-env does not have.
#pragma once
#include <cuda_runtime_api.h>
extern "C" cudaError_t cudaProfilerStart(void);
extern "C" cudaError_t cudaProfilerStop(void);
