// What the kernels see in place of CUDA's own language when they are compiled for the processor.
// Threads of a block are fibers on one thread of the system, which switch where the block or the
// warp waits for all of its threads. Blocks run one after another.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

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

// emulated_copy copies a vector of bytes in one access.
void emulated_copy(void *to, const void *from, size_t bytes);

// Vectors are copied by functions of the checker, which look at the whole address: g++ copies their numbers
// one by one, each of them aligned.
struct alignas(8) float2 {
    float x, y;
    float2() = default;
    float2(float x, float y) : x(x), y(y) {}
    float2(const float2 &from) { emulated_copy(this, &from, sizeof *this); }
    float2 &operator=(const float2 &from) {
        emulated_copy(this, &from, sizeof *this);
        return *this;
    }
};

struct alignas(16) float4 {
    float x, y, z, w;
    float4() = default;
    float4(float x, float y, float z, float w) : x(x), y(y), z(z), w(w) {}
    float4(const float4 &from) { emulated_copy(this, &from, sizeof *this); }
    float4 &operator=(const float4 &from) {
        emulated_copy(this, &from, sizeof *this);
        return *this;
    }
};

void emulated_syncthreads(const char *file, int line);
float emulated_shuffle(unsigned mask, float value, int lanes, const char *file, int line);

// For mma.h. emulated_lane is the thread's number in its warp. emulated_matrix is where a warp reads or writes a matrix
// at an address, whose rows or columns lie stride bytes apart. emulated_mma is d = a·b + c of fragments'
// shares; d may be c.
int emulated_lane();
void emulated_matrix(const void *at, size_t stride, const char *file, int line);
void emulated_mma(float *d, const float *a, const float *b, const float *c, int m, int n, int k, const char *file,
                  int line);

// stop ends the grid because of a mistake of the thread that runs, which run returns. It does not
// return itself.
[[noreturn]] void stop(const std::string &what);

inline float __fdividef(float x, float y) { return x / y; }
