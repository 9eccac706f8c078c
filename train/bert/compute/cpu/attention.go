package cpu

import (
	"math"

	"giantstream/train/bert/compute"
)

// attention is the scratch memory of one head in one text of n tokens.
type attention struct {
	keys   []float32 // width × n: keys transposed, so that sums go row by row
	scores []float32 // n × n
}

// Attend implements compute.Backend.
func (be *Backend) Attend(dst, qkv compute.Buffer, b compute.Batch, heads, width int) {
	out, in := numbers(dst), numbers(qkv)
	all := heads * width
	stride := 3 * all
	s := be.scratch.Get().(*attention)
	defer be.scratch.Put(s)
	scale := float32(1 / math.Sqrt(float64(width)))
	for i := range b.Texts() {
		first, n := int(b.Start[i]), int(b.Start[i+1]-b.Start[i])
		rows := in[first*stride : (first+n)*stride]
		s.keys, s.scores = resize(s.keys, n*width), resize(s.scores, n*n)
		for h := range heads {
			query, key, value := rows[h*width:], rows[all+h*width:], rows[2*all+h*width:]
			for r := range n {
				for j, v := range key[r*stride:][:width] {
					s.keys[j*n+r] = v
				}
			}
			multiply(n, n, width, scale, query, stride, s.keys, n, 0, s.scores, n)
			for r := range n {
				softmax(s.scores[r*n : (r+1)*n])
			}
			multiply(n, width, n, 1, s.scores, n, value, stride, 0, out[first*all+h*width:], all)
		}
	}
}

func resize(b []float32, n int) []float32 {
	if cap(b) < n {
		return make([]float32, n)
	}
	return b[:n]
}

// softmax turns x into its softmax.
func softmax(x []float32) {
	top := x[0]
	for _, v := range x {
		top = max(top, v)
	}
	var sum float32
	for i, v := range x {
		e := exp(v - top)
		x[i] = e
		sum += e
	}
	f := 1 / sum
	for i := range x {
		x[i] *= f
	}
}
