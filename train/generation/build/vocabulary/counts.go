package vocabulary

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync/atomic"

	"giantstream/featurize/sparse"
	"giantstream/featurize/tfidf"
	"giantstream/train/generation/build/graph"
	"giantstream/train/generation/build/sections"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
)

// What vectorise leaves of a text for later stages are the counts of its features, of which Ψ is made anew: they take
// two bytes a feature instead of eight, and to weigh them takes a tenth of the time that it takes to find them.

// appendCounts appends the counts of a text: for each feature, twice the distance from the one before it; or that plus
// one, and then the count, if it occurs more than once.
func appendCounts(b []byte, counts sparse.Vector) []byte {
	last := int32(0)
	for k, j := range counts.Index {
		distance := 2 * uint64(j-last)
		last = j
		if n := uint64(counts.Value[k]); n == 1 {
			b = binary.AppendUvarint(b, distance)
		} else {
			b = binary.AppendUvarint(binary.AppendUvarint(b, distance|1), n)
		}
	}
	return b
}

// readCounts reads what appendCounts wrote, for features below cols, re-using the capacity of dst.
func readCounts(b []byte, cols int, dst sparse.Vector) (sparse.Vector, error) {
	dst.Index, dst.Value = slices.Grow(dst.Index[:0], len(b)), slices.Grow(dst.Value[:0], len(b))
	next := func() uint64 {
		if len(b) > 1 { // nearly all numbers have one byte or two
			if b[0] < 0x80 {
				v := uint64(b[0])
				b = b[1:]
				return v
			}
			if b[1] < 0x80 {
				v := uint64(b[0]&0x7f) | uint64(b[1])<<7
				b = b[2:]
				return v
			}
		}
		v, n := binary.Uvarint(b)
		if n <= 0 {
			b = nil
			return 1 << 63 // more than there are features
		}
		b = b[n:]
		return v
	}
	at := uint64(0)
	for len(b) > 0 {
		distance, count := next(), uint64(1)
		if distance&1 != 0 {
			count = next()
		}
		if at += distance / 2; at >= uint64(cols) || count > 1<<62 {
			return dst, sections.ErrShort
		}
		dst.Index, dst.Value = append(dst.Index, int32(at)), append(dst.Value, float32(count))
	}
	return dst, nil
}

// TextCounts are the counts of the features of some texts.
type TextCounts struct {
	From    *work.Done
	Model   *tfidf.Model
	Records [][]byte
	damaged atomic.Bool
}

// Features is Ψ of text i, as train.TextFeatures. Ask err afterwards.
func (c *TextCounts) Features(i int, dst sparse.Vector) sparse.Vector {
	counts, err := readCounts(c.Records[i], c.Model.Dim(), dst)
	if err != nil {
		c.damaged.Store(true)
		return sparse.Vector{}
	}
	return c.Model.Weigh(counts)
}

// Err is the error of a text whose counts Features could not read.
func (c *TextCounts) Err() error {
	if c.damaged.Load() {
		return c.From.Explain(sections.ErrShort)
	}
	return nil
}

// EachCounts calls visit with the counts of the texts of a partition, a block after the other: those of nodes from lo
// on.
func EachCounts(ctx context.Context, b *work.Build, v *tfidf.Model, partition int,
	visit func(lo int, c *TextCounts) error) error {
	from, err := b.OutputsOf(ctx, stages.Vectorise, partition)
	if err != nil {
		return err
	}
	return graph.EachBlock(ctx, b, stages.Vectorise, "counts", partition, func(d *sections.Decoder, lo, hi int) error {
		c := &TextCounts{From: from, Model: v}
		for range hi - lo {
			c.Records = append(c.Records, d.StringBytes())
		}
		if d.Err != nil {
			return d.Err
		}
		return errors.Join(visit(lo, c), c.Err())
	})
}
