// Operations on single numbers, and the optimizer.
#include "common.cuh"

constexpr int ELEMENT_THREADS = 256;

// activate applies an activation to n numbers; out may be x.
extern "C" __global__ void __launch_bounds__(ELEMENT_THREADS)
    activate(float *out, const float *x, u64 n, int activation) {
    const u64 i = (u64)blockIdx.x * ELEMENT_THREADS + threadIdx.x;
    if (i < n) {
        out[i] = activated(x[i], activation);
    }
}

// slope is the derivative of an activation at x.
__device__ inline float slope(float x, int activation) {
    switch (activation) {
    case GELU: {
        const float cumulative = 0.5f * (1.0f + erff(x * 0.70710678118654752f));
        const float density = expf(-0.5f * x * x) * 0.39894228040143268f;
        return fmaf(x, density, cumulative);
    }
    case TANH: {
        const float t = tanhf(x);
        return 1.0f - t * t;
    }
    default: return 1.0f;
    }
}

// activate_backward gives the gradient of activate's x; dx may be dy.
extern "C" __global__ void __launch_bounds__(ELEMENT_THREADS)
    activate_backward(float *dx, const float *dy, const float *x, u64 n, int activation) {
    const u64 i = (u64)blockIdx.x * ELEMENT_THREADS + threadIdx.x;
    if (i < n) {
        dx[i] = dy[i] * slope(x[i], activation);
    }
}

// drop sets numbers to 0 and scales the others; out may be x. texts has the text of each row. A
// thread has four numbers of a row; blocks are rows by such fours.
extern "C" __global__ void __launch_bounds__(ELEMENT_THREADS)
    drop(float *out, const float *x, const int *texts, const int *starts, const u64 *seeds, int width, u64 site,
         int least, float scale) {
    const size_t row = blockIdx.x;
    const int first = (blockIdx.y * ELEMENT_THREADS + threadIdx.x) * 4;
    if (first >= width) {
        return;
    }
    const int text = texts[row];
    const u64 state = source(seeds[text], site);
    u64 i = (row - starts[text]) * width + first;
    u64 bits = draws(state, i / 4);
    for (int j = first; j < first + 4 && j < width; j++, i++) {
        if (i % 4 == 0) {
            bits = draws(state, i / 4);
        }
        out[row * width + j] = x[row * width + j] * kept(bits, i, least, scale);
    }
}

// SQUARES is how many numbers a block of squares adds up.
constexpr int SQUARES = 32 * ELEMENT_THREADS;

// block_sum returns the sum over the threads of a block in thread 0, and 0 in the others.
__device__ inline double block_sum(double *part, double x) {
    part[threadIdx.x] = x;
    for (int half = ELEMENT_THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < (unsigned)half) {
            part[threadIdx.x] += part[threadIdx.x + half];
        }
    }
    return threadIdx.x == 0 ? part[0] : 0;
}

// squares sums the squares of n numbers, one sum per block.
extern "C" __global__ void __launch_bounds__(ELEMENT_THREADS) squares(double *sums, const float *x, u64 n) {
    __shared__ double part[ELEMENT_THREADS];
    const u64 first = (u64)blockIdx.x * SQUARES, end = min(first + SQUARES, n);
    double sum = 0;
    for (u64 i = first + threadIdx.x; i < end; i += ELEMENT_THREADS) {
        sum = fma((double)x[i], (double)x[i], sum);
    }
    sum = block_sum(part, sum);
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = sum;
    }
}

// squares_total sets number i of out to the sum of n sums. It runs as one block.
extern "C" __global__ void __launch_bounds__(ELEMENT_THREADS)
    squares_total(float *out, u64 i, const double *sums, int n) {
    __shared__ double part[ELEMENT_THREADS];
    double sum = 0;
    for (int k = threadIdx.x; k < n; k += ELEMENT_THREADS) {
        sum += sums[k];
    }
    sum = block_sum(part, sum);
    if (threadIdx.x == 0) {
        out[i] = (float)sum;
    }
}

// adamw changes n weights by their gradient and sets it to 0 (compute.Step). Each block adds up
// the squares, one number per array of weights, to the squared norm of all gradients; where that
// is not finite, only the gradient changes. root is 1/√(1−Beta2ᵗ); beta1 and beta2 are 1 minus
// those of the step.
extern "C" __global__ void __launch_bounds__(ELEMENT_THREADS)
    adamw(float *w, float *mean, float *square, float *g, const float *squares, int arrays, u64 n, double clip,
          float decay, float rate, float root, float epsilon, float beta1, float beta2) {
    __shared__ double part[ELEMENT_THREADS];
    __shared__ float factor;
    __shared__ bool finite;
    double sum = 0;
    for (int k = threadIdx.x; k < arrays; k += ELEMENT_THREADS) {
        sum += squares[k];
    }
    sum = block_sum(part, sum);
    if (threadIdx.x == 0) {
        finite = isfinite(sum);
        factor = (float)min(1.0, clip / (sqrt(sum) + 1e-6));
    }
    __syncthreads();
    const u64 i = (u64)blockIdx.x * ELEMENT_THREADS + threadIdx.x;
    if (i >= n) {
        return;
    }
    if (finite) {
        const float x = g[i] * factor;
        const float m = mean[i] + beta1 * (x - mean[i]);
        const float v = square[i] + beta2 * (x * x - square[i]);
        mean[i] = m;
        square[i] = v;
        w[i] = w[i] * decay - rate * m / (sqrtf(v) * root + epsilon);
    }
    g[i] = 0.0f;
}
