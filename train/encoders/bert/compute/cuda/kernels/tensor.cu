// Matrix products on tensor cores, for compute capability 8.0 and newer. Operands are rounded to TF32 or
// bfloat16 on their way into shared memory; sums are float32. Every number of the result is one chain of matrix
// instructions over k = 0, K, 2·K, …, whatever the tile and wherever its row is in it.
#include "product.cuh"

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#include <mma.h>

namespace wmma = nvcuda::wmma;

// Bf16 rounds to bfloat16: 8 bits of significand. A matrix instruction has K steps of the sum, a slab DEPTH.
struct Bf16 {
    typedef __nv_bfloat16 Number;  // in shared memory
    typedef __nv_bfloat16 Element; // of a fragment
    static constexpr int K = 16;
    static constexpr int DEPTH = 32;

    struct __align__(8) Four {
        __nv_bfloat162 low, high;
    };
    __device__ static void put(Number *to, float4 v) {
        *reinterpret_cast<Four *>(to) = {__floats2bfloat162_rn(v.x, v.y), __floats2bfloat162_rn(v.z, v.w)};
    }
};

// Tf32 rounds to TF32: 11 bits of significand, in 32 bits.
struct Tf32 {
    typedef float Number;
    typedef wmma::precision::tf32 Element;
    static constexpr int K = 8;
    static constexpr int DEPTH = 16;

    __device__ static void put(Number *to, float4 v) {
        *reinterpret_cast<float4 *>(to) = {wmma::__float_to_tf32(v.x), wmma::__float_to_tf32(v.y),
                                           wmma::__float_to_tf32(v.z), wmma::__float_to_tf32(v.w)};
    }
};

// TensorSlab is one operand's part of a tile, SIZE rows (or columns) of the result by DEPTH steps of the sum, in
// shared memory as it lies in the operand.
template <class MODE, int SIZE, Layout LAYOUT> struct TensorSlab {
    typedef typename MODE::Number Number;
    // FAST is how many numbers lie side by side. 16 bytes more keep the rows of a fragment in different banks,
    // and fragments at multiples of 32 bytes, as load_matrix_sync wants them.
    static constexpr int FAST = LAYOUT == INNER ? MODE::DEPTH : SIZE;
    static constexpr int SLOW = LAYOUT == INNER ? SIZE : MODE::DEPTH;
    static constexpr int STRIDE = FAST + 16 / sizeof(Number);
    static constexpr int NUMBERS = SLOW * STRIDE;
    static constexpr int EACH = FAST * SLOW / 4 / PRODUCT_THREADS; // fours that a thread moves

    // fetch reads this thread's numbers of the slab that begins at (first, step) of an operand of size × depth.
    __device__ static void fetch(float4 (&v)[EACH], const float *x, int first, int step, int size, int depth,
                                 bool vector) {
#pragma unroll
        for (int p = 0; p < EACH; p++) {
            const int i = threadIdx.x + p * PRODUCT_THREADS;
            const int row = (LAYOUT == INNER ? first : step) + i / (FAST / 4);
            const int at = (LAYOUT == INNER ? step : first) + i % (FAST / 4) * 4;
            const int rows = LAYOUT == INNER ? size : depth, end = LAYOUT == INNER ? depth : size;
            if (row < rows) {
                v[p] = load4(x + (size_t)row * end, at, end, vector);
            } else {
                v[p] = {0.0f, 0.0f, 0.0f, 0.0f};
            }
        }
    }

    // store writes what fetch read to the slab, rounded.
    __device__ static void store(Number *slab, const float4 (&v)[EACH]) {
#pragma unroll
        for (int p = 0; p < EACH; p++) {
            const int i = threadIdx.x + p * PRODUCT_THREADS;
            MODE::put(slab + i / (FAST / 4) * STRIDE + i % (FAST / 4) * 4, v[p]);
        }
    }

    // fragment is where that of the rows (or columns) from first on and the steps from k on begins.
    __device__ static const Number *fragment(const Number *slab, int first, int k) {
        return slab + (LAYOUT == INNER ? first * STRIDE + k : k * STRIDE + first);
    }
};

// EDGE is the side of a fragment of the result. A warp has HIGH × WIDE of them, ACROSS warps are side by side.
constexpr int EDGE = 16;
template <int SIZE> struct Warps {
    static constexpr int HIGH = 2;
    static constexpr int WIDE = SIZE * SIZE / (PRODUCT_THREADS / WARP * HIGH * EDGE * EDGE);
    static constexpr int ACROSS = SIZE / (WIDE * EDGE);
    // STRIDE is that of the rows on their way from a warp's fragments to memory.
    static constexpr int STRIDE = WIDE * EDGE + 4;
    static constexpr int BYTES = PRODUCT_THREADS / WARP * EDGE * STRIDE * sizeof(float);
};

// Room is the shared memory of a block: two slabs of each operand, and when they are done with, the result.
template <class MODE, int SIZE, Layout A, Layout B> struct Room {
    static constexpr int SLABS =
        2 * (TensorSlab<MODE, SIZE, A>::NUMBERS + TensorSlab<MODE, SIZE, B>::NUMBERS) * sizeof(typename MODE::Number);
    static constexpr int BYTES = SLABS > Warps<SIZE>::BYTES ? SLABS : Warps<SIZE>::BYTES;
};

// Order is how the matrix instruction reads a fragment whose rows (of A) or columns (of B) are INNER or OUTER.
template <class WHICH, Layout LAYOUT> struct Order;
template <> struct Order<wmma::matrix_a, INNER> { typedef wmma::row_major Is; };
template <> struct Order<wmma::matrix_a, OUTER> { typedef wmma::col_major Is; };
template <> struct Order<wmma::matrix_b, INNER> { typedef wmma::col_major Is; };
template <> struct Order<wmma::matrix_b, OUTER> { typedef wmma::row_major Is; };

// multiply_tensor is a block's tile of C = A·B, SIZE × SIZE: C is m × n, A m × k, B k × n. The next slab is filled
// while the last is worked on, as in multiply.
template <class MODE, int SIZE, Layout A, Layout B>
__device__ inline void multiply_tensor(unsigned char *room, float *c, const float *a, const float *b,
                                       const float *bias, int m, int n, int k, bool gelu, bool add, bool vector_a,
                                       bool vector_b, bool vector_c) {
    typedef TensorSlab<MODE, SIZE, A> SlabA;
    typedef TensorSlab<MODE, SIZE, B> SlabB;
    typedef typename MODE::Number Number;
    typedef Warps<SIZE> W;
    const int row = blockIdx.y * SIZE, column = blockIdx.x * SIZE;
    const int warp = threadIdx.x / WARP, lane = threadIdx.x % WARP;
    const int y = warp / W::ACROSS * W::HIGH * EDGE, x = warp % W::ACROSS * W::WIDE * EDGE;
    Number *as = reinterpret_cast<Number *>(room), *bs = as + 2 * SlabA::NUMBERS;

    wmma::fragment<wmma::accumulator, EDGE, EDGE, MODE::K, float> sums[W::HIGH][W::WIDE];
#pragma unroll
    for (int p = 0; p < W::HIGH; p++) {
#pragma unroll
        for (int q = 0; q < W::WIDE; q++) {
            wmma::fill_fragment(sums[p][q], 0.0f);
        }
    }
    float4 next_a[SlabA::EACH], next_b[SlabB::EACH];
    SlabA::fetch(next_a, a, row, 0, m, k, vector_a);
    SlabB::fetch(next_b, b, column, 0, n, k, vector_b);
    SlabA::store(as, next_a);
    SlabB::store(bs, next_b);
    __syncthreads();
    int turn = 0;
    for (int step = 0; step < k; step += MODE::DEPTH, turn ^= 1) {
        const bool more = step + MODE::DEPTH < k;
        if (more) {
            SlabA::fetch(next_a, a, row, step + MODE::DEPTH, m, k, vector_a);
            SlabB::fetch(next_b, b, column, step + MODE::DEPTH, n, k, vector_b);
        }
        const Number *at = as + turn * SlabA::NUMBERS, *bt = bs + turn * SlabB::NUMBERS;
#pragma unroll
        for (int i = 0; i < MODE::DEPTH; i += MODE::K) {
            wmma::fragment<wmma::matrix_a, EDGE, EDGE, MODE::K, typename MODE::Element,
                           typename Order<wmma::matrix_a, A>::Is> left[W::HIGH];
#pragma unroll
            for (int p = 0; p < W::HIGH; p++) {
                wmma::load_matrix_sync(left[p], SlabA::fragment(at, y + p * EDGE, i), SlabA::STRIDE);
            }
#pragma unroll
            for (int q = 0; q < W::WIDE; q++) {
                wmma::fragment<wmma::matrix_b, EDGE, EDGE, MODE::K, typename MODE::Element,
                               typename Order<wmma::matrix_b, B>::Is> right;
                wmma::load_matrix_sync(right, SlabB::fragment(bt, x + q * EDGE, i), SlabB::STRIDE);
#pragma unroll
                for (int p = 0; p < W::HIGH; p++) {
                    wmma::mma_sync(sums[p][q], left[p], right, sums[p][q]);
                }
            }
        }
        if (more) {
            SlabA::store(as + (turn ^ 1) * SlabA::NUMBERS, next_a);
            SlabB::store(bs + (turn ^ 1) * SlabB::NUMBERS, next_b);
        }
        __syncthreads();
    }

    // Which thread has which number of a fragment is not defined, so the fragments go through shared memory.
    float *tile = reinterpret_cast<float *>(room) + warp * EDGE * W::STRIDE;
#pragma unroll
    for (int p = 0; p < W::HIGH; p++) {
#pragma unroll
        for (int q = 0; q < W::WIDE; q++) {
            wmma::store_matrix_sync(tile + q * EDGE, sums[p][q], W::STRIDE, wmma::mem_row_major);
        }
        __syncthreads();
        for (int i = lane; i < EDGE * W::WIDE * EDGE / 4; i += WARP) {
            const int in_row = i / (W::WIDE * EDGE / 4), in_column = i % (W::WIDE * EDGE / 4) * 4;
            const int r = row + y + p * EDGE + in_row, first = column + x + in_column;
            if (r < m) {
                finish4(c + (size_t)r * n + first, *reinterpret_cast<const float4 *>(tile + in_row * W::STRIDE + in_column),
                        first, n, bias ? bias + first : nullptr, gelu, add, vector_c);
            }
        }
        __syncthreads();
    }
}

// TENSOR_PRODUCT defines a kernel with the arguments of PRODUCT.
#define TENSOR_PRODUCT(NAME, MODE, SIZE, A, B)                                                                         \
    extern "C" __global__ void __launch_bounds__(PRODUCT_THREADS)                                                      \
        NAME(float *c, const float *a, const float *b, const float *bias, int m, int n, int k, int gelu, int add) {    \
        __shared__ __align__(32) unsigned char room[Room<MODE, SIZE, A, B>::BYTES];                                    \
        multiply_tensor<MODE, SIZE, A, B>(room, c, a, b, bias, m, n, k, gelu != 0, add != 0,                           \
                                          (A == INNER ? k : m) % 4 == 0, (B == INNER ? k : n) % 4 == 0, n % 4 == 0);   \
    }

TENSOR_PRODUCT(tf32_product_nn_64, Tf32, 64, INNER, OUTER)
TENSOR_PRODUCT(tf32_product_nt_64, Tf32, 64, INNER, INNER)
TENSOR_PRODUCT(tf32_product_tn_64, Tf32, 64, OUTER, OUTER)
TENSOR_PRODUCT(tf32_product_nn_128, Tf32, 128, INNER, OUTER)
TENSOR_PRODUCT(tf32_product_nt_128, Tf32, 128, INNER, INNER)
TENSOR_PRODUCT(tf32_product_tn_128, Tf32, 128, OUTER, OUTER)
TENSOR_PRODUCT(bf16_product_nn_64, Bf16, 64, INNER, OUTER)
TENSOR_PRODUCT(bf16_product_nt_64, Bf16, 64, INNER, INNER)
TENSOR_PRODUCT(bf16_product_tn_64, Bf16, 64, OUTER, OUTER)
TENSOR_PRODUCT(bf16_product_nn_128, Bf16, 128, INNER, OUTER)
TENSOR_PRODUCT(bf16_product_nt_128, Bf16, 128, INNER, INNER)
TENSOR_PRODUCT(bf16_product_tn_128, Bf16, 128, OUTER, OUTER)
#endif
