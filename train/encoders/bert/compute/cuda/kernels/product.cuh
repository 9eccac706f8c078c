// What the kernels of products share: product.cu, in float32, and tensor.cu, on tensor cores.
#pragma once

#include "common.cuh"

// Layout says how an operand lies in memory.
enum Layout {
    INNER, // the index that is summed over is the fast one
    OUTER, // it is the slow one
};

// PRODUCT_THREADS is the size of a block. Per step each thread loads four numbers of each operand.
constexpr int PRODUCT_THREADS = 256;

// load4 returns numbers at … at+3 of a row, zeros from end on. With vector, row + at is a multiple
// of 16 bytes where at is a multiple of 4.
__device__ inline float4 load4(const float *row, int at, int end, bool vector) {
    if (vector && at + 3 < end) {
        return *reinterpret_cast<const float4 *>(row + at);
    }
    float4 v;
    v.x = at < end ? row[at] : 0.0f;
    v.y = at + 1 < end ? row[at + 1] : 0.0f;
    v.z = at + 2 < end ? row[at + 2] : 0.0f;
    v.w = at + 3 < end ? row[at + 3] : 0.0f;
    return v;
}

// finish4 writes four neighbouring numbers of a row of the result, which has n: v + bias, with gelu GELU of
// it, with add what is there already, too. bias and out are those of the first number, whose column is
// first; bias may be null. With vector, out is a multiple of 16 bytes.
__device__ inline void finish4(float *out, float4 v, int first, int n, const float *bias, bool gelu, bool add,
                               bool vector) {
    float x[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (first + i < n) {
            if (bias) {
                x[i] += bias[i];
            }
            if (gelu) {
                x[i] = activated(x[i], GELU);
            }
            if (add) {
                x[i] += out[i];
            }
        }
    }
    if (vector && first + 3 < n) {
        *reinterpret_cast<float4 *>(out) = {x[0], x[1], x[2], x[3]};
        return;
    }
    for (int i = 0; i < 4 && first + i < n; i++) {
        out[i] = x[i];
    }
}
