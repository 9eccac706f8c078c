// Matrix products in float32. Every number of the result is one chain of fmaf over k = 0, 1, 2, …, whatever
// the tile: its bits depend neither on the number of rows nor on the shape of the tile.
#include "product.cuh"

// Slab is one operand's part of a tile: SIZE rows (or columns) of the result by DEPTH steps of the
// sum, in shared memory with the step as the slow index.
template <int SIZE, int DEPTH, Layout LAYOUT> struct Slab {
    // STRIDE keeps rows at multiples of 16 bytes and spreads transposing writes over the banks.
    static constexpr int STRIDE = SIZE + 4;
    static constexpr int NUMBERS = DEPTH * STRIDE;
    static_assert(SIZE * DEPTH == 4 * PRODUCT_THREADS, "a thread loads four numbers");

    // fetch reads this thread's four numbers of the slab that begins at (first, step) of an operand
    // of size × depth.
    __device__ static float4 fetch(const float *x, int first, int step, int size, int depth, bool vector) {
        float4 none = {0.0f, 0.0f, 0.0f, 0.0f};
        if (LAYOUT == INNER) {
            int row = first + threadIdx.x / (DEPTH / 4);
            int at = step + threadIdx.x % (DEPTH / 4) * 4;
            return row < size ? load4(x + (size_t)row * depth, at, depth, vector) : none;
        }
        int row = step + threadIdx.x / (SIZE / 4);
        int at = first + threadIdx.x % (SIZE / 4) * 4;
        return row < depth ? load4(x + (size_t)row * size, at, size, vector) : none;
    }

    // store writes what fetch read to the slab.
    __device__ static void store(float *slab, float4 v) {
        if (LAYOUT == INNER) {
            float *at = slab + threadIdx.x % (DEPTH / 4) * 4 * STRIDE + threadIdx.x / (DEPTH / 4);
            at[0] = v.x;
            at[STRIDE] = v.y;
            at[2 * STRIDE] = v.z;
            at[3 * STRIDE] = v.w;
            return;
        }
        float *at = slab + threadIdx.x / (SIZE / 4) * STRIDE + threadIdx.x % (SIZE / 4) * 4;
        *reinterpret_cast<float4 *>(at) = v;
    }
};

// multiply is a block's tile of C = A·B, SIZE × SIZE: C is m × n, A m × k, B k × n. A thread has
// EDGE × EDGE numbers of the tile, in pieces of 4 × 4 that lie SIZE·4/EDGE apart, so that the
// threads of a warp read neighbouring numbers of shared memory. as and bs hold two slabs each: the
// next is filled while the last is worked on, which takes one barrier per step.
template <int SIZE, int DEPTH, int EDGE, Layout A, Layout B>
__device__ inline void multiply(float *as, float *bs, float *c, const float *a, const float *b, const float *bias,
                                int m, int n, int k, bool gelu, bool add, bool vector_a, bool vector_b,
                                bool vector_c) {
    typedef Slab<SIZE, DEPTH, A> SlabA;
    typedef Slab<SIZE, DEPTH, B> SlabB;
    constexpr int APART = SIZE * 4 / EDGE;
    constexpr int ACROSS = SIZE / EDGE; // threads
    const int row = blockIdx.y * SIZE, column = blockIdx.x * SIZE;
    const int y = threadIdx.x / ACROSS * 4, x = threadIdx.x % ACROSS * 4;

    float sums[EDGE][EDGE] = {};
    SlabA::store(as, SlabA::fetch(a, row, 0, m, k, vector_a));
    SlabB::store(bs, SlabB::fetch(b, column, 0, n, k, vector_b));
    __syncthreads();
    int turn = 0;
    for (int step = 0; step < k; step += DEPTH, turn ^= 1) {
        const bool more = step + DEPTH < k;
        float4 next_a, next_b;
        if (more) {
            next_a = SlabA::fetch(a, row, step + DEPTH, m, k, vector_a);
            next_b = SlabB::fetch(b, column, step + DEPTH, n, k, vector_b);
        }
        const float *at = as + turn * SlabA::NUMBERS + y, *bt = bs + turn * SlabB::NUMBERS + x;
#pragma unroll
        for (int i = 0; i < DEPTH; i++) {
            float left[EDGE], right[EDGE];
#pragma unroll
            for (int p = 0; p < EDGE; p += 4) {
                *reinterpret_cast<float4 *>(left + p) =
                    *reinterpret_cast<const float4 *>(at + i * SlabA::STRIDE + p / 4 * APART);
                *reinterpret_cast<float4 *>(right + p) =
                    *reinterpret_cast<const float4 *>(bt + i * SlabB::STRIDE + p / 4 * APART);
            }
#pragma unroll
            for (int p = 0; p < EDGE; p++) {
#pragma unroll
                for (int q = 0; q < EDGE; q++) {
                    sums[p][q] = fmaf(left[p], right[q], sums[p][q]);
                }
            }
        }
        if (more) {
            SlabA::store(as + (turn ^ 1) * SlabA::NUMBERS, next_a);
            SlabB::store(bs + (turn ^ 1) * SlabB::NUMBERS, next_b);
        }
        __syncthreads();
    }

#pragma unroll
    for (int p = 0; p < EDGE; p++) {
        const int r = row + y + p / 4 * APART + p % 4;
        if (r >= m) {
            continue;
        }
#pragma unroll
        for (int q = 0; q < EDGE; q += 4) {
            const int first = column + x + q / 4 * APART;
            const float4 v = {sums[p][q], sums[p][q + 1], sums[p][q + 2], sums[p][q + 3]};
            finish4(c + (size_t)r * n + first, v, first, n, bias ? bias + first : nullptr, gelu, add, vector_c);
        }
    }
}

// PRODUCT defines a kernel: C = A·B + bias, with gelu GELU of it, or C += A·B with add. bias may be null.
// Operands are packed: rows of m, n or k numbers. An operand whose fast index has a multiple of
// four numbers is read by 16 bytes, since memory begins at a multiple of 256.
#define PRODUCT(NAME, SIZE, DEPTH, EDGE, A, B)                                                                         \
    extern "C" __global__ void __launch_bounds__(PRODUCT_THREADS)                                                      \
        NAME(float *c, const float *a, const float *b, const float *bias, int m, int n, int k, int gelu, int add) {                                                                                                \
        __shared__ __align__(16) float as[2 * Slab<SIZE, DEPTH, A>::NUMBERS];                                          \
        __shared__ __align__(16) float bs[2 * Slab<SIZE, DEPTH, B>::NUMBERS];                                          \
        multiply<SIZE, DEPTH, EDGE, A, B>(as, bs, c, a, b, bias, m, n, k, gelu != 0, add != 0,                        \
                                          (A == INNER ? k : m) % 4 == 0, (B == INNER ? k : n) % 4 == 0, n % 4 == 0);   \
    }

// nn: A and B as they are; nt: B transposed in memory, n × k; tn: A transposed, k × m.
PRODUCT(product_nn_64, 64, 16, 4, INNER, OUTER)
PRODUCT(product_nt_64, 64, 16, 4, INNER, INNER)
PRODUCT(product_tn_64, 64, 16, 4, OUTER, OUTER)
PRODUCT(product_nn_128, 128, 8, 8, INNER, OUTER)
PRODUCT(product_nt_128, 128, 8, 8, INNER, INNER)
PRODUCT(product_tn_128, 128, 8, 8, OUTER, OUTER)
