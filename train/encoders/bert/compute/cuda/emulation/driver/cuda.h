// What the kernels see in place of CUDA's own language when they are compiled for the processor.
// Threads of a block are fibers on one thread of the system, which switch where the block or the
// warp waits for all of its threads. Blocks run one after another.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#define __global__ __attribute__((visibility("default")))
#define __device__
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
// A block has the shared memory for itself. All of it lies in one section, which is filled with NaN
// before each block, and where accesses of different threads are compared.
#define __shared__ static __attribute__((section("shared_memory")))
#define __syncthreads() emulated_syncthreads(__FILE__, __LINE__)
#define __shfl_xor_sync(mask, value, lanes) emulated_shuffle(mask, value, lanes, __FILE__, __LINE__)

using std::isfinite;
using std::max;
using std::min;

struct dim3 {
    unsigned x, y, z;
};

extern dim3 threadIdx, blockIdx, blockDim, gridDim;

struct alignas(8) float2 {
    float x, y;
};

struct alignas(16) float4 {
    float x, y, z, w;
};

void emulated_syncthreads(const char *file, int line);
float emulated_shuffle(unsigned mask, float value, int lanes, const char *file, int line);

inline float __fdividef(float x, float y) { return x / y; }
