#pragma once

// Before a function that nvcc compiles for the GPU too.
#ifdef __CUDACC__
#define LINNET_BOTH __host__ __device__ inline
#else
#define LINNET_BOTH inline
#endif
