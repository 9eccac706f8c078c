// Self-attention within each text, forward and backward, without storing what is quadratic in its
// length: scores live in shared memory, a tile at a time (Dao et al., "FlashAttention", 2022; Rabe
// and Staats, 2021). Tiles begin at a text's first token, so a text's bits do not depend on its
// batch.
#include "common.cuh"

// Site is where a block works: a head of a text, and its drop-out.
struct Site {
    int first, n;      // the text's first row, and how many it has
    int head, heads;   // which head of how many
    int width;         // numbers of a head
    float scale;       // of scores: 1/√width
    u64 state;         // what is dropped; with least = 0, nothing
    unsigned least;
    float kept_scale;

    __device__ int all() const { return heads * width; }
    // query, key and value are where the head's parts of row r begin in qkv.
    __device__ size_t query(int r) const { return ((size_t)(first + r) * 3) * all() + head * width; }
    __device__ size_t key(int r) const { return ((size_t)(first + r) * 3 + 1) * all() + head * width; }
    __device__ size_t value(int r) const { return ((size_t)(first + r) * 3 + 2) * all() + head * width; }
    // outcome is the same in rows of the result.
    __device__ size_t outcome(int r) const { return (size_t)(first + r) * all() + head * width; }
    // factor is what drop-out multiplies the weight of key k for query q by.
    __device__ float factor(int q, int k) const {
        if (least == 0) {
            return 1.0f;
        }
        const u64 i = ((u64)head * n + q) * n + k;
        return kept(draws(state, i / 4), i, least, kept_scale);
    }
};

// site returns that of this block. tiles has a text and a first row for each block in x; y is the
// head. seeds is null where nothing is dropped.
__device__ inline Site site(const int *tiles, const int *starts, const u64 *seeds, int heads, int width,
                            float scale, u64 number, int least, float kept_scale) {
    const int text = tiles[2 * blockIdx.x];
    Site s;
    s.first = starts[text];
    s.n = starts[text + 1] - s.first;
    s.head = blockIdx.y;
    s.heads = heads;
    s.width = width;
    s.scale = scale;
    s.state = seeds ? source(seeds[text], number) : 0;
    s.least = seeds ? least : 0;
    s.kept_scale = kept_scale;
    return s;
}

// Shape is that of a tile: TILE rows on each side. A thread has 4 rows of one side by 2 of the
// other; GROUP neighbouring threads share their 4 rows. WIDTH is the room for a head's numbers.
template <int WIDTH_, int TILE_> struct Shape {
    static constexpr int WIDTH = WIDTH_;
    static constexpr int TILE = TILE_;
    static constexpr int GROUP = TILE / 2;
    static constexpr int THREADS = TILE / 4 * GROUP;
    static constexpr int BLOCKS = WIDTH == 32 ? 4 : 1; // at once on a multiprocessor: bounds the registers
    static constexpr int STRIDE = TILE + 4; // multiples of 16 bytes
    static constexpr int SLAB = WIDTH * STRIDE;
    static constexpr int SCORES = TILE * STRIDE;
    static constexpr int EACH = WIDTH / GROUP; // columns of a result that a thread has, GROUP apart
    static_assert(WIDTH % GROUP == 0, "columns spread evenly");
};

// Lanes is a thread's place in its block.
template <class S> struct Lanes {
    int four, two; // first of its 4 rows and of its 2
    int lane;      // in its group
    __device__ Lanes() : four(threadIdx.x / S::GROUP * 4), two(threadIdx.x % S::GROUP * 2),
                         lane(threadIdx.x % S::GROUP) {}
};

// load fills a slab: column j of the part of row r goes to slab[j·STRIDE + r], zeros beyond the
// text and the width. Rows begin at x, stride numbers apart.
template <class S> __device__ inline void load(float *slab, const float *x, size_t stride, int rows, int width) {
#pragma unroll 4
    for (int i = threadIdx.x; i < S::WIDTH * S::TILE; i += S::THREADS) {
        const int r = i / S::WIDTH, j = i % S::WIDTH;
        slab[j * S::STRIDE + r] = r < rows && j < width ? x[r * stride + j] : 0.0f;
    }
}

// dots gives the products of the thread's 4 rows of one slab with its 2 of another: chains of fmaf
// over the columns, so that a score has the same bits in every kernel.
template <class S>
__device__ inline void dots(float (&out)[4][2], const float *fours, const float *twos, const Lanes<S> &l) {
#pragma unroll
    for (int p = 0; p < 4; p++) {
        out[p][0] = out[p][1] = 0.0f;
    }
#pragma unroll 4
    for (int j = 0; j < S::WIDTH; j++) {
        const float4 a = *reinterpret_cast<const float4 *>(fours + j * S::STRIDE + l.four);
        const float2 b = *reinterpret_cast<const float2 *>(twos + j * S::STRIDE + l.two);
        const float left[4] = {a.x, a.y, a.z, a.w};
#pragma unroll
        for (int p = 0; p < 4; p++) {
            out[p][0] = fmaf(left[p], b.x, out[p][0]);
            out[p][1] = fmaf(left[p], b.y, out[p][1]);
        }
    }
}

// put writes the thread's 4 × 2 numbers to a tile of scores, rows of its 4.
template <class S> __device__ inline void put(float *scores, const float (&x)[4][2], const Lanes<S> &l) {
#pragma unroll
    for (int p = 0; p < 4; p++) {
        *reinterpret_cast<float2 *>(scores + (l.four + p) * S::STRIDE + l.two) = {x[p][0], x[p][1]};
    }
}

// accumulate adds scores · slab to the thread's 4 rows and EACH columns; slab is transposed, as
// load leaves it.
template <class S>
__device__ inline void accumulate(float (&sums)[4][S::EACH], const float *scores, const float *slab,
                                  const Lanes<S> &l) {
#pragma unroll 1
    for (int k = 0; k < S::TILE; k += 4) {
        float4 left[4];
#pragma unroll
        for (int p = 0; p < 4; p++) {
            left[p] = *reinterpret_cast<const float4 *>(scores + (l.four + p) * S::STRIDE + k);
        }
#pragma unroll
        for (int i = 0; i < S::EACH; i++) {
            const float4 right =
                *reinterpret_cast<const float4 *>(slab + (l.lane + i * S::GROUP) * S::STRIDE + k);
#pragma unroll
            for (int p = 0; p < 4; p++) {
                sums[p][i] = fmaf(left[p].x, right.x, sums[p][i]);
                sums[p][i] = fmaf(left[p].y, right.y, sums[p][i]);
                sums[p][i] = fmaf(left[p].z, right.z, sums[p][i]);
                sums[p][i] = fmaf(left[p].w, right.w, sums[p][i]);
            }
        }
    }
}

// group_max and group_sum are over the threads that share their 4 rows.
template <class S> __device__ inline float group_max(float x) {
    for (int offset = S::GROUP / 2; offset > 0; offset /= 2) {
        x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, offset));
    }
    return x;
}

template <class S> __device__ inline float group_sum(float x) {
    for (int offset = S::GROUP / 2; offset > 0; offset /= 2) {
        x += __shfl_xor_sync(0xffffffffu, x, offset);
    }
    return x;
}

// LOWEST is the largest score of no keys, and that of a key beyond the text: exp(LOWEST − x) is 0.
constexpr float LOWEST = -3.402823466e38f;

// Softmax is that of a row whose scores come in tiles: the largest so far and the sum of
// exp(score − largest).
struct Softmax {
    float largest, sum;
};

// exponents turns a row's two scores of this thread into exp(score − largest) and takes them into
// the softmax. It returns what earlier sums must be multiplied by. Keys from n on do not count;
// key is the first of the two. A tile has a key below n, so largest is finite.
template <class S> __device__ inline float exponents(Softmax &m, float (&score)[2], float scale, int key, int n) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
        score[i] = key + i < n ? score[i] * scale : LOWEST;
    }
    const float largest = fmaxf(m.largest, group_max<S>(fmaxf(score[0], score[1])));
    const float shrink = expf(m.largest - largest);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        score[i] = expf(score[i] - largest);
    }
    m.sum = fmaf(m.sum, shrink, group_sum<S>(score[0] + score[1]));
    m.largest = largest;
    return shrink;
}

// attend: out = softmax(q·kᵀ/√width)·v for a tile of queries. Keys and values share a slab.
template <class S>
__device__ inline void attend(float *queries, float *keys, float *scores, float *out, const float *qkv,
                              const Site &s, int first) {
    const Lanes<S> l;
    const size_t stride = (size_t)3 * s.all();
    load<S>(queries, qkv + s.query(first), stride, s.n - first, s.width);
    float sums[4][S::EACH] = {};
    Softmax m[4];
#pragma unroll
    for (int p = 0; p < 4; p++) {
        m[p] = {LOWEST, 0.0f};
    }
    for (int at = 0; at < s.n; at += S::TILE) {
        load<S>(keys, qkv + s.key(at), stride, s.n - at, s.width);
        __syncthreads();
        float x[4][2];
        dots<S>(x, queries, keys, l);
#pragma unroll
        for (int p = 0; p < 4; p++) {
            const float shrink = exponents<S>(m[p], x[p], s.scale, at + l.two, s.n);
#pragma unroll
            for (int i = 0; i < S::EACH; i++) {
                sums[p][i] *= shrink;
            }
#pragma unroll
            for (int i = 0; i < 2; i++) {
                x[p][i] *= s.factor(first + l.four + p, at + l.two + i);
            }
        }
        put<S>(scores, x, l);
        __syncthreads();
        load<S>(keys, qkv + s.value(at), stride, s.n - at, s.width);
        __syncthreads();
        accumulate<S>(sums, scores, keys, l);
        __syncthreads();
    }
#pragma unroll
    for (int p = 0; p < 4; p++) {
        const int r = first + l.four + p;
        const float over = __fdividef(1.0f, m[p].sum);
#pragma unroll
        for (int i = 0; i < S::EACH; i++) {
            const int j = l.lane + i * S::GROUP;
            if (r < s.n && j < s.width) {
                out[s.outcome(r) + j] = sums[p][i] * over;
            }
        }
    }
}

// STATISTICS are what attend_backward_query leaves for attend_backward_key, per row and head: the
// largest score, 1/Σ exp(score − largest), and Σ weight·slope, the mean slope.
constexpr int STATISTICS = 3;

// attend_backward_query gives the gradient of a tile of queries, and the statistics of its rows.
// The first pass over the keys finds the statistics, the second the gradient:
//
//	slope of a weight = factor·(dy·v),  of a score = weight·(slope − mean slope)
template <class S>
__device__ inline void attend_backward_query(float *queries, float *slopes, float *keys, float *values,
                                             float *scores, float *dqkv, float *statistics, const float *dy,
                                             const float *qkv, const Site &s, int first) {
    const Lanes<S> l;
    const size_t stride = (size_t)3 * s.all();
    load<S>(queries, qkv + s.query(first), stride, s.n - first, s.width);
    load<S>(slopes, dy + s.outcome(first), s.all(), s.n - first, s.width);
    Softmax m[4];
    float mean[4] = {};
#pragma unroll
    for (int p = 0; p < 4; p++) {
        m[p] = {LOWEST, 0.0f};
    }
    for (int at = 0; at < s.n; at += S::TILE) {
        load<S>(keys, qkv + s.key(at), stride, s.n - at, s.width);
        load<S>(values, qkv + s.value(at), stride, s.n - at, s.width);
        __syncthreads();
        float x[4][2], d[4][2];
        dots<S>(x, queries, keys, l);
        dots<S>(d, slopes, values, l);
#pragma unroll
        for (int p = 0; p < 4; p++) {
            const float shrink = exponents<S>(m[p], x[p], s.scale, at + l.two, s.n);
            float sum = 0.0f;
#pragma unroll
            for (int i = 0; i < 2; i++) {
                sum = fmaf(x[p][i], d[p][i] * s.factor(first + l.four + p, at + l.two + i), sum);
            }
            mean[p] = fmaf(mean[p], shrink, group_sum<S>(sum));
        }
        __syncthreads();
    }
    float over[4];
#pragma unroll
    for (int p = 0; p < 4; p++) {
        over[p] = __fdividef(1.0f, m[p].sum);
        mean[p] *= over[p];
        const int r = first + l.four + p;
        if (l.lane == 0 && r < s.n) {
            float *to = statistics + ((size_t)(s.first + r) * s.heads + s.head) * STATISTICS;
            to[0] = m[p].largest;
            to[1] = over[p];
            to[2] = mean[p];
        }
    }

    float sums[4][S::EACH] = {};
    for (int at = 0; at < s.n; at += S::TILE) {
        load<S>(keys, qkv + s.key(at), stride, s.n - at, s.width);
        load<S>(values, qkv + s.value(at), stride, s.n - at, s.width);
        __syncthreads();
        float x[4][2], d[4][2];
        dots<S>(x, queries, keys, l);
        dots<S>(d, slopes, values, l);
#pragma unroll
        for (int p = 0; p < 4; p++) {
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const int key = at + l.two + i;
                const float weight = key < s.n ? expf(x[p][i] * s.scale - m[p].largest) * over[p] : 0.0f;
                x[p][i] = weight * (d[p][i] * s.factor(first + l.four + p, key) - mean[p]) * s.scale;
            }
        }
        put<S>(scores, x, l);
        __syncthreads();
        accumulate<S>(sums, scores, keys, l);
        __syncthreads();
    }
#pragma unroll
    for (int p = 0; p < 4; p++) {
        const int r = first + l.four + p;
#pragma unroll
        for (int i = 0; i < S::EACH; i++) {
            const int j = l.lane + i * S::GROUP;
            if (r < s.n && j < s.width) {
                dqkv[s.query(r) + j] = sums[p][i];
            }
        }
    }
}

// attend_backward_key gives the gradients of a tile of keys and of their values. Here a thread's 4
// rows are keys and its 2 are queries.
template <class S>
__device__ inline void attend_backward_key(float *queries, float *slopes, float *keys, float *values, float *weights,
                                           float *scores, float *dqkv, const float *statistics, const float *dy,
                                           const float *qkv, const Site &s, int first) {
    const Lanes<S> l;
    const size_t stride = (size_t)3 * s.all();
    load<S>(keys, qkv + s.key(first), stride, s.n - first, s.width);
    load<S>(values, qkv + s.value(first), stride, s.n - first, s.width);
    float of_key[4][S::EACH] = {}, of_value[4][S::EACH] = {};
    for (int at = 0; at < s.n; at += S::TILE) {
        load<S>(queries, qkv + s.query(at), stride, s.n - at, s.width);
        load<S>(slopes, dy + s.outcome(at), s.all(), s.n - at, s.width);
        __syncthreads();
        float x[4][2], d[4][2];
        dots<S>(x, keys, queries, l);
        dots<S>(d, values, slopes, l);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int query = at + l.two + i;
            float largest = 0.0f, over = 0.0f, mean = 0.0f; // a row beyond the text adds nothing
            if (query < s.n) {
                const float *of = statistics + ((size_t)(s.first + query) * s.heads + s.head) * STATISTICS;
                largest = of[0];
                over = of[1];
                mean = of[2];
            }
#pragma unroll
            for (int p = 0; p < 4; p++) {
                const int key = first + l.four + p;
                const float factor = s.factor(query, key);
                const float weight =
                    query < s.n && key < s.n ? expf(x[p][i] * s.scale - largest) * over : 0.0f;
                x[p][i] = weight * factor;
                d[p][i] = weight * (d[p][i] * factor - mean) * s.scale;
            }
        }
        put<S>(weights, x, l);
        put<S>(scores, d, l);
        __syncthreads();
        accumulate<S>(of_value, weights, slopes, l);
        accumulate<S>(of_key, scores, queries, l);
        __syncthreads();
    }
#pragma unroll
    for (int p = 0; p < 4; p++) {
        const int r = first + l.four + p;
#pragma unroll
        for (int i = 0; i < S::EACH; i++) {
            const int j = l.lane + i * S::GROUP;
            if (r < s.n && j < s.width) {
                dqkv[s.key(r) + j] = of_key[p][i];
                dqkv[s.value(r) + j] = of_value[p][i];
            }
        }
    }
}

// ATTENTION defines the three kernels for heads of up to WIDTH numbers, with tiles of TILE rows.
#define ATTENTION(WIDTH, TILE)                                                                                         \
    typedef Shape<WIDTH, TILE> Shape##WIDTH;                                                                           \
    extern "C" __global__ void __launch_bounds__(Shape##WIDTH::THREADS, Shape##WIDTH::BLOCKS)                                                \
        attend_##WIDTH(float *out, const float *qkv, const int *tiles, const int *starts, const u64 *seeds, int heads, \
                       int width, float scale, u64 number, int least, float kept_scale) {                                                \
        __shared__ __align__(16) float queries[Shape##WIDTH::SLAB], keys[Shape##WIDTH::SLAB];                          \
        __shared__ __align__(16) float scores[Shape##WIDTH::SCORES];                                                   \
        const Site s = site(tiles, starts, seeds, heads, width, scale, number, least, kept_scale);                                 \
        attend<Shape##WIDTH>(queries, keys, scores, out, qkv, s, tiles[2 * blockIdx.x + 1]);                           \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(Shape##WIDTH::THREADS, Shape##WIDTH::BLOCKS)                                                \
        attend_backward_query_##WIDTH(float *dqkv, float *statistics, const float *dy, const float *qkv,               \
                                      const int *tiles, const int *starts, const u64 *seeds, int heads, int width, float scale,     \
                                      u64 number, int least, float kept_scale) {                                            \
        __shared__ __align__(16) float queries[Shape##WIDTH::SLAB], slopes[Shape##WIDTH::SLAB];                        \
        __shared__ __align__(16) float keys[Shape##WIDTH::SLAB], values[Shape##WIDTH::SLAB];                           \
        __shared__ __align__(16) float scores[Shape##WIDTH::SCORES];                                                   \
        const Site s = site(tiles, starts, seeds, heads, width, scale, number, least, kept_scale);                                 \
        attend_backward_query<Shape##WIDTH>(queries, slopes, keys, values, scores, dqkv, statistics, dy, qkv, s,       \
                                            tiles[2 * blockIdx.x + 1]);                                                \
    }                                                                                                                  \
    extern "C" __global__ void __launch_bounds__(Shape##WIDTH::THREADS, Shape##WIDTH::BLOCKS)                                                \
        attend_backward_key_##WIDTH(float *dqkv, const float *statistics, const float *dy, const float *qkv,           \
                                    const int *tiles, const int *starts, const u64 *seeds, int heads, int width, float scale,       \
                                    u64 number, int least, float kept_scale) {                                              \
        __shared__ __align__(16) float queries[Shape##WIDTH::SLAB], slopes[Shape##WIDTH::SLAB];                        \
        __shared__ __align__(16) float keys[Shape##WIDTH::SLAB], values[Shape##WIDTH::SLAB];                           \
        __shared__ __align__(16) float weights[Shape##WIDTH::SCORES], scores[Shape##WIDTH::SCORES];                    \
        const Site s = site(tiles, starts, seeds, heads, width, scale, number, least, kept_scale);                                 \
        attend_backward_key<Shape##WIDTH>(queries, slopes, keys, values, weights, scores, dqkv, statistics, dy, qkv,   \
                                          s, tiles[2 * blockIdx.x + 1]);                                               \
    }

// Tiles of wide heads are smaller, so that four slabs fit into 48 KiB.
ATTENTION(32, 32)
ATTENTION(64, 32)
ATTENTION(128, 16)
