// Package cuda is a compute.Backend for NVIDIA GPUs from compute capability 7.0 on, in float32 or with products on
// tensor cores (compute.Math), through the driver's interface (gorgonia.org/cu) and kernels of our own (kernels).
//
// It is built with the tag cuda, needs cgo and CUDA's headers, and a program that links it does not
// start without libcuda.so.1, which comes with the GPU's driver. docs/CUDA.md says how to build and
// test it, and what it has run on.
//
// # Order
//
// All calls of the driver come from one goroutine, locked to its thread, on one stream. An operation
// is queued and returns; operations take effect in the order in which they were queued. The first
// error stops all later operations, and Read returns it: ErrMemory if the device's memory or the
// limit of Options.Memory is used up, ErrLost for everything that a device does not recover from.
//
// # Same text, same bits
//
// Each number of a product is one chain of fused multiply-adds in the order of the inner index, or in the other
// modes of compute.Math one chain of matrix instructions, and tiles of attention begin at a text's first token.
// So a row's bits do not depend on the rows around it. No kernel adds floats in an order that chance decides.
//
// # Memory
//
// Buffers are freed when their owner says so (compute.Freer), or else when the garbage collector finds that
// nothing refers to them. Their memory goes to a pool, which keeps it for buffers of the same size. Where
// neither the limit nor the device has room for another size, the pool gives back what it keeps.
package cuda
