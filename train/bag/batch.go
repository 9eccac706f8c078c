package bag

import (
	"giantstream/train/internal/rng"
)

// batch is the input of one step: some instances and the n-grams that they
// keep, by instance for the forward pass and by table row for the update.
type batch struct {
	instances []int32
	// Instance k keeps rows[start[k]:start[k+1]] with values beside them.
	start  []int32
	rows   []int32
	values []float32
	// Table row touched[j] occurs in uses[from[j]:from[j+1]], in order of
	// instance.
	touched []int32
	from    []int32
	uses    []use
}

// use is one occurrence of a table row: instance k of the batch, value x.
type use struct {
	k int32
	x float32
}

// batcher makes batches. It is a pure function of (seed, epoch, instances)
// with scratch memory.
type batcher struct {
	features Features
	row      []int32 // feature → table row or -1
	keep     float64
	seed     uint64
	// place[r] is row r's index in touched while a batch is made, else -1.
	place []int32
}

func newBatcher(x Features, t *table, o Options) *batcher {
	b := &batcher{features: x, row: t.row, keep: o.Keep, seed: o.Seed, place: make([]int32, len(t.features))}
	for r := range b.place {
		b.place[r] = -1
	}
	return b
}

// fill makes the batch of the given instances in an epoch, re-using out.
func (b *batcher) fill(out *batch, instances []int32, epoch int) {
	out.instances = instances
	out.start = append(out.start[:0], 0)
	out.rows, out.values = out.rows[:0], out.values[:0]
	out.touched, out.from = out.touched[:0], out.from[:0]
	threshold := uint64(b.keep * (1 << 16))
	for _, i := range instances {
		r := rng.New(b.seed, streamDrop, uint64(epoch), uint64(i))
		x := b.features.Row(int(i))
		var bits uint64
		for k, f := range x.Index {
			if k%4 == 0 {
				bits = r.Uint64()
			}
			drop := bits&0xFFFF >= threshold
			bits >>= 16
			row := b.row[f]
			if drop || row < 0 {
				continue
			}
			out.rows = append(out.rows, row)
			out.values = append(out.values, x.Value[k])
			if b.place[row] < 0 {
				b.place[row] = int32(len(out.touched))
				out.touched = append(out.touched, row)
				out.from = append(out.from, 0)
			}
			out.from[b.place[row]]++
		}
		out.start = append(out.start, int32(len(out.rows)))
	}
	b.transpose(out)
}

// transpose lists the uses of each touched row; from holds their counts.
func (b *batcher) transpose(out *batch) {
	var at int32
	for j, n := range out.from {
		out.from[j] = at
		at += n
	}
	if cap(out.uses) < len(out.rows) {
		out.uses = make([]use, len(out.rows)+len(out.rows)/2)
	}
	out.uses = out.uses[:len(out.rows)]
	for k := range out.instances {
		for p := out.start[k]; p < out.start[k+1]; p++ {
			j := b.place[out.rows[p]]
			out.uses[out.from[j]] = use{int32(k), out.values[p]}
			out.from[j]++
		}
	}
	// from[j] is now row j's end, which is row j+1's beginning.
	out.from = append(out.from, 0)
	copy(out.from[1:], out.from[:len(out.from)-1])
	out.from[0] = 0
	for _, row := range out.touched {
		b.place[row] = -1
	}
}
