// CUDA's mma.h (WMMA) for the emulation: matrices of a warp, each thread with an equal share of the numbers.
// It refuses what the device's own would take and get wrong: addresses that are no multiples of 32 bytes, rows
// at distances that are no multiples of 16, threads of a warp at different calls, numbers for TF32 that
// are not rounded to it.
#pragma once

#include "cuda.h"

#include <cstring>

// __nv_bfloat16 is the upper half of a float.
struct __nv_bfloat16 {
    uint16_t bits;
};

struct alignas(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
};

// __float2bfloat16_rn rounds to nearest, ties to even. Infinities stay, a NaN stays one.
inline __nv_bfloat16 __float2bfloat16_rn(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (x != x) {
        return {uint16_t(bits >> 16 | 0x40)};
    }
    return {uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
    return {__float2bfloat16_rn(x), __float2bfloat16_rn(y)};
}

namespace nvcuda {
namespace wmma {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32;
}

// __float_to_tf32 rounds to nearest, ties away from zero (cvt.rna.tf32.f32).
inline float __float_to_tf32(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7f800000) != 0x7f800000) {
        bits = (bits + 0x1000) & ~0x1fffu;
    }
    memcpy(&x, &bits, sizeof bits);
    return x;
}

// Element says what a fragment's numbers are in memory, and what the instruction takes them for.
template <class T> struct Element;
template <> struct Element<float> {
    typedef float Stored;
    static float of(float x) { return x; }
};
template <> struct Element<precision::tf32> {
    typedef float Stored;
    static float of(float x) {
        if (x == x && x != __float_to_tf32(x)) {
            stop("a number for a TF32 matrix that is not rounded to TF32");
        }
        return x;
    }
};
template <> struct Element<__nv_bfloat16> {
    typedef __nv_bfloat16 Stored;
    static float of(__nv_bfloat16 x) {
        const uint32_t bits = uint32_t(x.bits) << 16;
        float f;
        memcpy(&f, &bits, sizeof f);
        return f;
    }
};

template <class USE, int M, int N, int K> struct Shape;
template <int M, int N, int K> struct Shape<matrix_a, M, N, K> {
    static constexpr int rows = M, columns = K;
};
template <int M, int N, int K> struct Shape<matrix_b, M, N, K> {
    static constexpr int rows = K, columns = N;
};
template <int M, int N, int K> struct Shape<accumulator, M, N, K> {
    static constexpr int rows = M, columns = N;
};

template <class USE, int M, int N, int K, class T, class LAYOUT = void> struct fragment {
    static constexpr int rows = Shape<USE, M, N, K>::rows, columns = Shape<USE, M, N, K>::columns;
    static constexpr int num_elements = rows * columns / 32;
    // This thread's share of the matrix, whose rows are strung together. A device spreads it otherwise, so
    // kernels must not look.
    float share[num_elements];
};

template <class F> inline void fill_fragment(F &f, float x) {
    for (float &y : f.share) {
        y = x;
    }
}

template <class USE, int M, int N, int K, class T, class LAYOUT>
inline void load_matrix_sync(fragment<USE, M, N, K, T, LAYOUT> &f, const typename Element<T>::Stored *from, unsigned stride,
                             const char *file = __builtin_FILE(), int line = __builtin_LINE()) {
    typedef fragment<USE, M, N, K, T, LAYOUT> F;
    emulated_matrix(from, stride * sizeof *from, file, line);
    for (int i = 0; i < F::num_elements; i++) {
        const int place = emulated_lane() * F::num_elements + i, row = place / F::columns, column = place % F::columns;
        constexpr bool by_rows = std::is_same<LAYOUT, row_major>::value;
        f.share[i] = Element<T>::of(from[by_rows ? row * stride + column : column * stride + row]);
    }
}

template <int M, int N, int K>
inline void store_matrix_sync(float *to, const fragment<accumulator, M, N, K, float> &f, unsigned stride, layout_t layout,
                              const char *file = __builtin_FILE(), int line = __builtin_LINE()) {
    typedef fragment<accumulator, M, N, K, float> F;
    emulated_matrix(to, stride * sizeof *to, file, line);
    for (int i = 0; i < F::num_elements; i++) {
        const int place = emulated_lane() * F::num_elements + i, row = place / F::columns, column = place % F::columns;
        to[layout == mem_row_major ? row * stride + column : column * stride + row] = f.share[i];
    }
}

template <int M, int N, int K, class T, class A, class B>
inline void mma_sync(fragment<accumulator, M, N, K, float> &d, const fragment<matrix_a, M, N, K, T, A> &a,
                     const fragment<matrix_b, M, N, K, T, B> &b, const fragment<accumulator, M, N, K, float> &c,
                     const char *file = __builtin_FILE(), int line = __builtin_LINE()) {
    emulated_mma(d.share, a.share, b.share, c.share, M, N, K, file, line);
}

} // namespace wmma
} // namespace nvcuda
