// Package compute is what a BERT encoder, and its training, ask of the machine that runs it:
// coarse operations on buffers that only the machine looks into, so that the
// same model runs on CPUs (compute/cpu) and on accelerators. Package
// compute/computetest is the suite that every backend passes.
//
// # Rows, not padding
//
// The tokens of the texts of a batch stand one after another, a row each,
// without padding; Batch.Start says where each text begins. Everything but
// attention and pooling works on rows alone; attention looks at the rows of one
// text, so it needs no mask, and nothing is computed that is not used. What a
// row becomes does not depend, to the last bit, on the other texts of the batch.
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
// In training, Linear leaves GELU to Activate, so that both sides of it are known to
// the way back; Drop follows Embed and the Linears before AddNorm. Back:
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
// Nothing in a step waits for the machine but the loss, which is computed from what
// Read gives: clipping happens where the gradients are.
//
// Matrices are row-major. Devlin et al. (2019); Vaswani et al., "Attention Is
// All You Need" (2017).
package compute
