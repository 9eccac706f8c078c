package cpu

import (
	"math"
	"slices"

	"giantstream/train/encoders/bert/compute"
	"giantstream/train/numeric/simd"
)

// attention is the scratch memory of one head in one text of n tokens.
type attention struct {
	keys   []float32 // width × n: keys transposed, so that sums go row by row
	scores []float32 // n × n, or with more columns that are 0
	slopes []float32 // n × n: the gradient of scores
	kept   []float32 // n × n: scores after drop-out
}

// head locates one head of one text in the rows of queries, keys and values, and in the rows of the
// result.
type head struct {
	text, number  int
	n, width      int
	first         int // row of the text
	at            int // first column
	all, stride   int // numbers in a row of the outcome, and of queries, keys and values
	query, key, v []float32
}

// blockHeads is how many heads a goroutine takes at a time.
const blockHeads = 4

// heads runs body for each head of each text.
func (be *Backend) heads(qkv []float32, b compute.Batch, heads, width int, body func(a *attention, h head)) {
	all := heads * width
	be.forEachBlock(b.Texts()*heads, blockHeads, func(s *scratch, _, lo, hi int) {
		for i := lo; i < hi; i++ {
			text := i / heads
			h := head{
				text: text, number: i % heads,
				n: int(b.Start[text+1] - b.Start[text]), width: width,
				first: int(b.Start[text]), at: i % heads * width, all: all, stride: 3 * all,
			}
			h.query, h.key, h.v = h.parts(qkv)
			body(&s.attention, h)
		}
	})
}

// parts returns where the head's queries, keys and values begin.
func (h *head) parts(qkv []float32) (query, key, value []float32) {
	rows := qkv[h.first*h.stride : (h.first+h.n)*h.stride]
	return rows[h.at:], rows[h.all+h.at:], rows[2*h.all+h.at:]
}

// scale keeps scores from growing with the width.
func (h *head) scale() float32 { return float32(1 / math.Sqrt(float64(h.width))) }

// weigh sets a.scores to the attention weights: row i has the weight of each token for token i. A row has
// columns, n or more; those beyond n become 0.
func (h *head) weigh(a *attention, columns int) {
	n := h.n
	a.keys, a.scores = resize(a.keys, n*h.width), resize(a.scores, n*columns)
	h.transpose(a.keys)
	multiply(plain, plain, n, n, h.width, h.scale(), h.query, h.stride, a.keys, n, 0, a.scores, columns)
	for row := range slices.Chunk(a.scores, columns) {
		for j := n; j < columns; j++ {
			row[j] = float32(math.Inf(-1))
		}
		simd.Softmax(row)
	}
}

// transpose sets keys (width × n) to the keys transposed, four rows at a time.
func (h *head) transpose(keys []float32) {
	n, w := h.n, h.width
	row := func(r int) []float32 { return h.key[r*h.stride:][:w] }
	r := 0
	for ; r+4 <= n; r += 4 {
		a, b, c, d := row(r), row(r + 1)[:w], row(r + 2)[:w], row(r + 3)[:w]
		for j, v := range a {
			to := keys[j*n+r:][:4]
			to[0], to[1], to[2], to[3] = v, b[j], c[j], d[j]
		}
	}
	for ; r < n; r++ {
		for j, v := range row(r) {
			keys[j*n+r] = v
		}
	}
}

// drop returns x, which has a number for each of a.scores, after drop-out; it
// may lie in dst.
func (h *head) drop(dst, x []float32, b compute.Batch, d compute.Dropout) []float32 {
	if b.Seeds == nil || d.Rate == 0 {
		return x
	}
	d.DroppedFor(b.Seeds[h.text]).Apply(dst, x, h.number*h.n*h.n)
	return dst[:len(x)]
}

// Attend implements compute.Forward.
func (be *Backend) Attend(dst, qkv compute.Buffer, b compute.Batch, heads, width int, d compute.Dropout) {
	out := numbers(dst)
	be.heads(numbers(qkv), b, heads, width, func(a *attention, h head) {
		h.weigh(a, h.n)
		kept := h.drop(a.scores, a.scores, b, d)
		multiply(plain, plain, h.n, h.width, h.n, 1, kept, h.n, h.v, h.stride, 0, out[h.first*h.all+h.at:], h.all)
	})
}

// AttendBackward implements compute.Backward. It computes the weights again, because they would
// take far more memory than anything else that is kept.
func (be *Backend) AttendBackward(dqkv, dy, qkv compute.Buffer, b compute.Batch, heads, width int,
	drop compute.Dropout) {
	out, slope := numbers(dqkv), numbers(dy)
	be.heads(numbers(qkv), b, heads, width, func(a *attention, h head) {
		n, w := h.n, h.width
		d := slope[h.first*h.all+h.at:]
		dQuery, dKey, dValue := h.parts(out)
		h.weigh(a, h.n)
		a.slopes, a.kept = resize(a.slopes, n*n), resize(a.kept, n*n)
		kept := h.drop(a.kept, a.scores, b, drop)
		multiply(transposed, plain, n, w, n, 1, kept, n, d, h.all, 0, dValue, h.stride)
		multiply(plain, transposed, n, n, w, 1, d, h.all, h.v, h.stride, 0, a.slopes, n)
		h.drop(a.slopes, a.slopes, b, drop)
		for r := range n {
			softmaxBackward(a.slopes[r*n:(r+1)*n], a.scores[r*n:(r+1)*n])
		}
		multiply(plain, plain, n, w, n, h.scale(), a.slopes, n, h.key, h.stride, 0, dQuery, h.stride)
		multiply(transposed, plain, n, w, n, h.scale(), a.slopes, n, h.query, h.stride, 0, dKey, h.stride)
	})
}

// softmaxBackward turns d, the gradient of a softmax's outcome p, into that of
// its input: p·(d − Σ d·p).
func softmaxBackward(d, p []float32) {
	p = p[:len(d)]
	var sum float64
	for i, v := range d {
		sum += float64(v * p[i])
	}
	mean := float32(sum)
	for i, v := range d {
		d[i] = p[i] * (v - mean)
	}
}
