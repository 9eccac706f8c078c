// Operations on rows: embedding, normalization, sums of columns, pooling.
#include "common.cuh"

constexpr int ROW_THREADS = 256;
constexpr int ROW_WARPS = ROW_THREADS / WARP;

// embed_sum gives each token the sum of the vectors of its word, its place and the first segment.
// A block has one row.
extern "C" __global__ void __launch_bounds__(ROW_THREADS)
    embed_sum(float *out, const float *words, const float *positions, const float *types, const int *ids,
              const int *places, int width) {
    const size_t row = blockIdx.x;
    const float *word = words + (size_t)ids[row] * width, *position = positions + (size_t)places[row] * width;
    for (int j = threadIdx.x; j < width; j += ROW_THREADS) {
        out[row * width + j] = word[j] + position[j] + types[j];
    }
}

// Moments is what normalization makes of a row: x becomes (x − shift)·scale.
struct Moments {
    float shift, scale;
};

// at returns number j of a row, with that of the residual if there is one.
__device__ inline float at(const float *x, const float *residual, int j) {
    return residual ? x[j] + residual[j] : x[j];
}

// moments returns those of a row, which a warp reads together.
__device__ inline Moments moments(const float *x, const float *residual, int width, float epsilon) {
    const int lane = threadIdx.x % WARP;
    float sum = 0.0f;
    for (int j = lane; j < width; j += WARP) {
        sum += at(x, residual, j);
    }
    const float mean = warp_sum(sum) / width;
    float squares = 0.0f;
    for (int j = lane; j < width; j += WARP) {
        const float d = at(x, residual, j) - mean;
        squares = fmaf(d, d, squares);
    }
    return {mean, 1.0f / sqrtf(warp_sum(squares) / width + epsilon)};
}

// add_norm normalizes x + residual; residual may be null, out may be x or residual. A warp has one
// row.
extern "C" __global__ void __launch_bounds__(ROW_THREADS)
    add_norm(float *out, const float *x, const float *residual, const float *gain, const float *bias, int rows,
             int width, float epsilon) {
    const size_t row = (size_t)blockIdx.x * ROW_WARPS + threadIdx.x / WARP;
    if (row >= (size_t)rows) {
        return; // the whole warp does
    }
    x += row * width;
    out += row * width;
    if (residual) {
        residual += row * width;
    }
    const Moments m = moments(x, residual, width, epsilon);
    for (int j = threadIdx.x % WARP; j < width; j += WARP) {
        out[j] = (at(x, residual, j) - m.shift) * m.scale * gain[j] + bias[j];
    }
}

// NORM_ROWS is how many rows a block of norm_backward has.
constexpr int NORM_ROWS = 16;

// norm_backward gives the gradient of the input of add_norm; dx may be dy. A block writes its sums
// for gain and for bias to sums, blocks × 2 × width.
//
//	dx = (dx̂ − mean(dx̂) − x̂·mean(dx̂·x̂)) / σ,  dx̂ = dy·gain
extern "C" __global__ void __launch_bounds__(ROW_THREADS)
    norm_backward(float *dx, const float *dy, const float *x, const float *residual, const float *gain, float *sums,
                  int rows, int width, float epsilon) {
    __shared__ Moments of[NORM_ROWS];
    __shared__ float mean[NORM_ROWS], product[NORM_ROWS];
    const size_t first = (size_t)blockIdx.x * NORM_ROWS;
    const int count = min((size_t)NORM_ROWS, rows - first);
    dx += first * width;
    dy += first * width;
    x += first * width;
    if (residual) {
        residual += first * width;
    }

    const int lane = threadIdx.x % WARP;
    for (int r = threadIdx.x / WARP; r < count; r += ROW_WARPS) {
        const float *row = x + (size_t)r * width, *slope = dy + (size_t)r * width;
        const float *rest = residual ? residual + (size_t)r * width : nullptr;
        const Moments m = moments(row, rest, width, epsilon);
        float sum = 0.0f, dot = 0.0f;
        for (int j = lane; j < width; j += WARP) {
            const float d = slope[j] * gain[j];
            sum += d;
            dot = fmaf(d, (at(row, rest, j) - m.shift) * m.scale, dot);
        }
        sum = warp_sum(sum);
        dot = warp_sum(dot);
        if (lane == 0) {
            of[r] = m;
            mean[r] = sum / width;
            product[r] = dot / width;
        }
    }
    __syncthreads();

    for (int j = threadIdx.x; j < width; j += ROW_THREADS) {
        float of_gain = 0.0f, of_bias = 0.0f;
        for (int r = 0; r < count; r++) {
            const size_t i = (size_t)r * width + j;
            const float unit = ((residual ? x[i] + residual[i] : x[i]) - of[r].shift) * of[r].scale;
            const float d = dy[i];
            of_gain = fmaf(d, unit, of_gain);
            of_bias += d;
            dx[i] = (d * gain[j] - mean[r] - unit * product[r]) * of[r].scale;
        }
        sums[(size_t)blockIdx.x * 2 * width + j] = of_gain;
        sums[((size_t)blockIdx.x * 2 + 1) * width + j] = of_bias;
    }
}

// COLUMNS is how many columns a block of column_sum has, LANES how many threads share a column.
constexpr int COLUMNS = 32;
constexpr int LANES = ROW_THREADS / COLUMNS;

// column_sum adds up columns over chunks of rows: out, chunks × columns, becomes the sums, or with
// add grows by them. Rows of x lie stride numbers apart. Blocks are columns by chunks.
extern "C" __global__ void __launch_bounds__(ROW_THREADS)
    column_sum(float *out, const float *x, int rows, int columns, int stride, int chunk, int add) {
    __shared__ float part[LANES][COLUMNS];
    const int column = blockIdx.x * COLUMNS + threadIdx.x % COLUMNS;
    const int lane = threadIdx.x / COLUMNS;
    const int first = blockIdx.y * chunk, end = min(first + chunk, rows);
    float sum = 0.0f;
    if (column < columns) {
        for (int r = first + lane; r < end; r += LANES) {
            sum += x[(size_t)r * stride + column];
        }
    }
    part[lane][threadIdx.x % COLUMNS] = sum;
    __syncthreads();
    if (lane > 0 || column >= columns) {
        return;
    }
    for (int i = 1; i < LANES; i++) {
        sum += part[i][threadIdx.x];
    }
    float *to = out + (size_t)blockIdx.y * columns + column;
    *to = add ? *to + sum : sum;
}

// scatter adds rows of x to those rows of g that targets name. Group i adds rows
// order[starts[i]] … order[starts[i+1]−1] to row targets[i], in this order. Blocks are groups by
// columns.
extern "C" __global__ void __launch_bounds__(ROW_THREADS)
    scatter(float *g, const float *x, const int *order, const int *starts, const int *targets, int width) {
    const int j = blockIdx.y * ROW_THREADS + threadIdx.x;
    if (j >= width) {
        return;
    }
    float sum = 0.0f;
    for (int i = starts[blockIdx.x]; i < starts[blockIdx.x + 1]; i++) {
        sum += x[(size_t)order[i] * width + j];
    }
    g[(size_t)targets[blockIdx.x] * width + j] += sum;
}

// pool makes one vector of the rows of a text. Blocks are texts by columns.
extern "C" __global__ void __launch_bounds__(ROW_THREADS)
    pool(float *out, const float *x, const int *starts, int width, int pooling) {
    const int j = blockIdx.y * ROW_THREADS + threadIdx.x;
    if (j >= width) {
        return;
    }
    const int first = starts[blockIdx.x], end = starts[blockIdx.x + 1];
    float sum = x[(size_t)first * width + j];
    if (pooling == MEAN) {
        for (int r = first + 1; r < end; r++) {
            sum += x[(size_t)r * width + j];
        }
        sum /= end - first;
    }
    out[(size_t)blockIdx.x * width + j] = sum;
}

// pool_backward gives the gradient of the rows of a text. Blocks are texts by columns.
extern "C" __global__ void __launch_bounds__(ROW_THREADS)
    pool_backward(float *dx, const float *dy, const int *starts, int width, int pooling) {
    const int j = blockIdx.y * ROW_THREADS + threadIdx.x;
    if (j >= width) {
        return;
    }
    const int first = starts[blockIdx.x], end = starts[blockIdx.x + 1];
    const float slope = dy[(size_t)blockIdx.x * width + j];
    const float share = pooling == MEAN ? slope * (1.0f / (end - first)) : 0.0f;
    for (int r = first; r < end; r++) {
        dx[(size_t)r * width + j] = pooling == FIRST && r == first ? slope : share;
    }
}
