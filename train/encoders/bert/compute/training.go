package compute

// Backward is the part of a Backend that takes a loss's gradient back through
// the operations. Gradients have the shapes of what they belong to. That of Drop
// is Drop itself, with the same seeds and site.
//
// An operation adds to its argument g, row by row in a fixed order, so that the gradients of a
// step's batches add up. All other outputs are overwritten.
type Backward interface {
	// EmbedBackward adds to g the gradients that follow from dy, the gradient of Embed's rows. It
	// overwrites dy. Rows of words that are not in the batch stay as they are.
	EmbedBackward(g *Embedding, dy Buffer, b Batch, e *Embedding)
	// LinearBackward gives the gradient of x of an Identity Linear,
	// dy·Weightᵀ; with add, it adds it to dx.
	LinearBackward(dx, dy Buffer, rows int, l *Linear, add bool)
	// LinearGradient adds xᵀ·dy to g.Weight and the sum of dy's rows to g.Bias.
	LinearGradient(g *Linear, x, dy Buffer, rows int)
	// ActivateBackward gives the gradient of Activate's x; dx may be dy.
	ActivateBackward(dx, dy, x Buffer, n int, a Activation)
	// AttendBackward gives the gradient of Attend's qkv.
	AttendBackward(dqkv, dy, qkv Buffer, b Batch, heads, width int, d Dropout)
	// AddNormBackward gives the gradient of x, which is that of residual too,
	// and adds to g's Gain and Bias; dx may be dy.
	AddNormBackward(g *Norm, dx, dy, x, residual Buffer, rows int, n *Norm)
	// PoolBackward gives the gradient of Pool's x, all of its rows.
	PoolBackward(dx, dy Buffer, b Batch, width int, p Pooling)
}

// Optimizer is the part of a Backend that changes weights.
type Optimizer interface {
	// Zero sets all of x to 0.
	Zero(x Buffer)
	// Squares sets dst[i] to the sum of the squares of x.
	Squares(dst Buffer, i int, x Buffer)
	// AdamW changes the weights w by their gradient g and sets g to 0. mean
	// and square are the running moments, zero before the first step. The
	// squared norm of all gradients together is the sum of squares, which
	// AdamW only reads; where that is not finite, only g changes.
	AdamW(w, mean, square, g, squares Buffer, s *Step)
}

// Step says how AdamW changes weights (Loshchilov and Hutter, "Decoupled
// Weight Decay Regularization", 2019; Kingma and Ba, "Adam", 2015), with
// PyTorch's order of operations:
//
//	g ← g · min(1, Clip / (‖all gradients‖ + 1e-6))
//	w ← w · (1 − Rate·Decay)
//	mean ← Beta1·mean + (1−Beta1)·g,  square ← Beta2·square + (1−Beta2)·g²
//	w ← w − Rate/(1−Beta1ᵗ) · mean / (√(square/(1−Beta2ᵗ)) + Epsilon)
type Step struct {
	Number       int64 // t, from 1
	Rate         float64
	Beta1, Beta2 float64
	Epsilon      float64
	Decay        float64 // 0 for biases and normalizations
	Clip         float64 // the largest norm of all gradients together
}
