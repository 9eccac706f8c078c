package compute

import "errors"

// Buffer is an array of float32 that belongs to the backend that made it.
type Buffer interface {
	// Len is how many numbers it holds.
	Len() int
}

// Batch is the tokens of some texts.
type Batch struct {
	// IDs are the token ids of all texts, one after another.
	IDs []int32
	// Start has one entry more than there are texts: text i is
	// IDs[Start[i]:Start[i+1]]. No text is empty.
	Start []int32
	// Places has the position of each token within its text; nil means 0, 1, 2, ….
	Places []int32
	// Seeds has a seed per text for what is dropped of it; nil means nothing.
	Seeds []uint64
	// Mark, if not nil, is shared only by batches that are equal and stay so. A backend that has
	// copied a batch for one operation may use the copy for the next ones with the same mark.
	Mark *Mark
}

// Mark tells batches apart, by its address.
type Mark struct{ _ byte }

// Rows is the number of tokens.
func (b Batch) Rows() int { return len(b.IDs) }

// Texts is the number of texts.
func (b Batch) Texts() int { return len(b.Start) - 1 }

// Embedding is the input layer: the sum of three vectors, normalized.
type Embedding struct {
	// Words is vocabulary × width, Positions is positions × width. Types has a vector for each
	// segment of a text; here texts have only the first segment.
	Words, Positions, Types Buffer
	Norm                    Norm
}

// Norm is layer normalization of rows of Width numbers:
// (x − mean) / √(variance + Epsilon) · Gain + Bias.
type Norm struct {
	Width      int
	Gain, Bias Buffer
	Epsilon    float64
}

// Linear is x·Weight + Bias.
type Linear struct {
	In, Out int
	// Weight is In × Out: the transpose of what PyTorch stores.
	Weight, Bias Buffer
}

// Activation is applied to each number that a Linear gives.
type Activation uint8

// The activations.
const (
	Identity Activation = iota
	GELU                // x·Φ(x), with the exact normal distribution function
	Tanh
)

// Pooling makes one vector of the rows of a text.
type Pooling uint8

// The poolings.
const (
	First Pooling = iota // the row of [CLS]
	Mean                 // the mean over all rows
)

// Backend computes. dst is overwritten and is never one of the inputs, except
// where stated; buffers may be longer than an operation needs. Sizes are the
// caller's responsibility: they were checked when the model was loaded.
//
// Operations on different dst may run at the same time. They report no errors: a backend that can
// fail remembers its first failure and returns it from Read. An operation may return before it is
// done, as long as operations take effect in the order of the calls. Only Read waits.
type Backend interface {
	// New makes a buffer of n numbers, to be written before it is read. It has this length even
	// where the backend has no memory for it, which is a failure.
	New(n int) Buffer
	// Upload makes a buffer of the given numbers, which it may keep.
	Upload(data []float32) Buffer
	// Write copies src to the beginning of dst.
	Write(dst Buffer, src []float32)
	// Read copies the first len(dst) numbers of src, after all operations
	// that write it.
	Read(dst []float32, src Buffer) error
	// Spread returns a backend on the same buffers that may use up to workers cores for an
	// operation, for callers that have one batch at a time. It does not change a result.
	Spread(workers int) Backend

	Forward
	Backward
	Optimizer
}

// ErrFailed: a backend has failed, for example because its memory is full or its device is lost.
// What it holds is lost with it.
var ErrFailed = errors.New("the device has failed")

// Batcher is a Backend that wants batches of another size than the CPU, and takes one after another.
type Batcher interface {
	// BatchTokens returns how many tokens suit a batch if each token takes the given bytes of the
	// backend's memory. A backend returns the same number for the same bytes as long as it lives,
	// since the last bits of gradients depend on it.
	BatchTokens(bytes int64) int
}

// BatchTokens returns the size of batch that suits a backend, in tokens, if each token takes the
// given bytes of its memory. For a backend that is not a Batcher it returns otherwise.
func BatchTokens(be Backend, bytes int64, otherwise int) int {
	if b, ok := be.(Batcher); ok {
		return max(1, b.BatchTokens(bytes))
	}
	return otherwise
}

// Multiplier is a Backend that may multiply in another Math than Float32.
type Multiplier interface {
	Math() Math
}

// MathOf returns how a backend multiplies.
func MathOf(be Backend) Math {
	if m, ok := be.(Multiplier); ok {
		return m.Math()
	}
	return Float32
}

// Freer is a Backend whose buffers Go's garbage collector does not free.
type Freer interface {
	// Free gives the memory of a buffer back once the operations called before have used it. It may
	// be called from any goroutine, and does nothing after the backend has been closed.
	Free(Buffer)
}

// Free gives buffers back to the backend, where that is not the garbage collector's work.
func Free(be Backend, buffers ...Buffer) {
	f, ok := be.(Freer)
	if !ok {
		return
	}
	for _, b := range buffers {
		if b != nil {
			f.Free(b)
		}
	}
}

// Forward is the part of a Backend that computes a model's output.
type Forward interface {
	// Embed gives the rows of b: word, position within the text and type,
	// normalized.
	Embed(dst Buffer, b Batch, e *Embedding)
	// Linear gives rows of l.Out numbers from rows of l.In.
	Linear(dst, x Buffer, rows int, l *Linear, a Activation)
	// Activate applies a to n numbers, exactly as Linear does; dst may be x.
	Activate(dst, x Buffer, n int, a Activation)
	// Attend is self-attention within each text. Rows of qkv are query, key
	// and value side by side, each heads × width numbers; those of dst are
	// heads × width: softmax(q·kᵀ/√width)·v. Of the softmax, which for a text of
	// n tokens is heads × n × n numbers, d drops some.
	Attend(dst, qkv Buffer, b Batch, heads, width int, d Dropout)
	// Drop drops numbers of the rows of b, width in each; dst may be x.
	Drop(dst, x Buffer, b Batch, width int, d Dropout)
	// AddNorm normalizes x + residual; dst may be x or residual.
	AddNorm(dst, x, residual Buffer, rows int, n *Norm)
	// Pool gives a row of width numbers per text.
	Pool(dst, x Buffer, b Batch, width int, p Pooling)
}
