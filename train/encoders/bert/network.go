package bert

import (
	"giantstream/train"
	"giantstream/train/encoders/bert/compute"
)

const (
	// maxBatch is how many texts a Network's Forward takes at least. The activations of that many
	// texts of full length are kept, so no forward pass runs twice.
	maxBatch = keptBatches * stepTokens / DefaultMaxTokens
	// keptTokens bounds the tokens that a Network keeps, 4 bytes each.
	keptTokens = 1 << 24
)

// Network is a Tuner as a train.Network. It reads a text when its instance is used for
// the first time and then keeps the tokens; once keptTokens of them are kept, it tokenizes
// the texts of other instances whenever they are used.
type Network struct {
	*Tuner
	text func(instance int) (string, error)
	ids  map[int32][]int32
	kept int // tokens in ids
}

var _ train.Network = (*Network)(nil)

// NewNetwork makes a network of a tuner and a function that returns the text of an instance.
func NewNetwork(t *Tuner, text func(instance int) (string, error)) *Network {
	return &Network{Tuner: t, text: text, ids: map[int32][]int32{}}
}

// MaxBatch implements train.Network. On a backend that asks for larger batches it is the texts of
// full length that one of them has room for.
func (n *Network) MaxBatch() int {
	if n.batch <= max(stepTokens, n.encoder.options.MaxTokens) {
		return maxBatch
	}
	return max(maxBatch, n.batch/n.encoder.options.MaxTokens)
}

// Forward implements train.Network.
func (n *Network) Forward(instances []int32, seeds []uint64, out []float32) error {
	b := compute.Batch{IDs: n.all.IDs[:0], Start: append(n.all.Start[:0], 0)}
	for _, i := range instances {
		var err error
		if b.IDs, err = n.tokens(i, b.IDs); err != nil {
			return err
		}
		b.Start = append(b.Start, int32(len(b.IDs)))
	}
	return n.forward(b, seeds, out)
}

// tokens appends the tokens of an instance's text.
func (n *Network) tokens(instance int32, dst []int32) ([]int32, error) {
	if ids, ok := n.ids[instance]; ok {
		return append(dst, ids...), nil
	}
	text, err := n.text(int(instance))
	if err != nil {
		return dst, err
	}
	from := len(dst)
	dst = n.encoder.tokenizer.Encode(text, n.encoder.options.MaxTokens, dst)
	if ids := dst[from:]; n.kept+len(ids) <= keptTokens {
		n.ids[instance] = append([]int32(nil), ids...)
		n.kept += len(ids)
	}
	return dst, nil
}

// thin leaves a share of the tokens out of each text of b, by its seed, but never the first and the
// last. The remaining tokens keep their positions, so that the network sees a text with gaps and
// not another text.
func thin(b *compute.Batch, share float64) {
	if share == 0 {
		return
	}
	d := compute.Dropout{Rate: share, Site: siteTokens}
	b.Places = b.Places[:0]
	from, at := 0, 0
	for i, seed := range b.Seeds {
		end := int(b.Start[i+1])
		dropped := d.DroppedFor(seed)
		for r := from; r < end; r++ {
			if r == from || r == end-1 || dropped.Keeps(r-from) {
				b.IDs[at] = b.IDs[r]
				b.Places = append(b.Places, int32(r-from))
				at++
			}
		}
		from, b.Start[i+1] = end, int32(at)
	}
	b.IDs = b.IDs[:at]
}
