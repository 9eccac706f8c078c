// What all kernels share. Kernels are compiled without contraction (--fmad=false): a product and a
// sum are one rounding only where the source says fmaf, so that a kernel's bits follow from its
// source, on the device and in the emulation.
#pragma once

typedef unsigned long long u64;

// Activations, numbered as compute.Activation.
enum { IDENTITY = 0, GELU = 1, TANH = 2 };

// Poolings, numbered as compute.Pooling.
enum { FIRST = 0, MEAN = 1 };

// WARP is how many threads run in step.
constexpr int WARP = 32;

// warp_sum returns the sum over the threads of a warp, the same bits in each of them.
__device__ inline float warp_sum(float x) {
    for (int offset = WARP / 2; offset > 0; offset /= 2) {
        x += __shfl_xor_sync(0xffffffffu, x, offset);
    }
    return x;
}

// activate applies an activation to one number.
__device__ inline float activated(float x, int activation) {
    switch (activation) {
    case GELU: return 0.5f * x * (1.0f + erff(x * 0.70710678118654752f));
    case TANH: return tanhf(x);
    default: return x;
    }
}

// mix is SplitMix64's output function, as numeric.Mix.
__device__ inline u64 mix(u64 x) {
    x ^= x >> 30;
    x *= 0xBF58476D1CE4E5B9ull;
    x ^= x >> 27;
    x *= 0x94D049BB133111EBull;
    return x ^ (x >> 31);
}

constexpr u64 GOLDEN = 0x9E3779B97F4A7C15ull;

// source returns the state of numeric.NewRand(seed, site): what is dropped of a text is a function
// of it (compute.Dropout).
__device__ inline u64 source(u64 seed, u64 site) {
    return mix(mix(seed + GOLDEN) + GOLDEN) ^ mix(site + GOLDEN);
}

// draws returns the 64 bits that numbers 4·group … 4·group+3 of a text share.
__device__ inline u64 draws(u64 state, u64 group) { return mix(state + (group + 1) * GOLDEN); }

// kept is scale if number i, whose draws are given, stays, and 0 if it is dropped.
__device__ inline float kept(u64 draws, u64 i, unsigned least, float scale) {
    return (unsigned)(draws >> (i % 4 * 16) & 0xffff) >= least ? scale : 0.0f;
}
