// Package compute has the interfaces between a BERT encoder, or its training, and the machine that
// runs it: coarse operations on opaque buffers, so that the same model runs on CPUs (compute/cpu)
// and on accelerators. Package compute/computetest is the suite that every backend passes.
//
// # Rows, not padding
//
// The tokens of the texts of a batch stand one after another, a row each, without padding;
// Batch.Start says where each text begins. Everything but attention and pooling works on single
// rows. Attention works on the rows of one text, so it needs no mask, and nothing unused is
// computed. A row's result does not depend, to the last bit, on the other texts of the batch.
//
// # Devices
//
// A backend with memory of its own may also be a Batcher, which gets larger batches, and a Freer, whose
// buffers are freed when they are not needed any more. Arguments of an operation hold until it
// returns, buffers excepted: what runs later takes copies of the Batch, the Step and of what Write
// is given. Batch.Mark says when a copy serves several operations. Package devices opens devices by
// name; computetest.Device is one for tests.
//
// # Order of operations
//
//	Embed                       rows × width
//	per layer:
//	  Linear (query, key, value side by side)
//	  Attend
//	  Linear, AddNorm
//	  Linear with GELU, Linear, AddNorm
//	Pool                        texts × width
//
// In training, Linear leaves GELU to Activate, so that the backward pass has both its input and its
// output. Drop follows Embed and the Linears before AddNorm. The backward pass:
//
//	PoolBackward
//	per layer, last to first:
//	  AddNormBackward
//	  Activate (again), LinearGradient, LinearBackward
//	  ActivateBackward, LinearGradient, LinearBackward
//	  AddNormBackward
//	  LinearGradient, LinearBackward
//	  AttendBackward, LinearGradient, LinearBackward
//	EmbedBackward
//	per array of weights: Squares; then AdamW
//
// In a step only the loss waits for the machine: it is computed from what Read returns. Gradients
// are clipped on the machine.
//
// Matrices are row-major. Devlin et al. (2019); Vaswani et al., "Attention Is
// All You Need" (2017).
package compute
