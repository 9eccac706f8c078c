package generation

import (
	"giantstream/featurize/pairs"
	"giantstream/sink/embedding"
	"giantstream/sink/rows"
	"giantstream/train"
	"giantstream/train/encoders/hybrid"
	"giantstream/train/encoders/parts"
	"giantstream/train/numeric"
)

// CustomerOf tells customers apart: a hash of who placed an order, 0 where that is unknown.
func CustomerOf(o *rows.Order) uint64 {
	if o.Customer == "" {
		return 0
	}
	return numeric.HashString(o.Customer)
}

// Following is a generation as nodes have other vectors than at its cut. Those who read the commit log after the cut
// have one each, as each is somewhere else. One goroutine calls Follow, and any may call the other methods.
type Following struct {
	*Generation
	encoder *hybrid.Encoder // nil for an encoder all of whose views are of the text
	// ordered is the input that says what nodes are ordered with, 0 before it has said so.
	ordered int32
}

// Following returns the generation as of its cut.
func (g *Generation) Following() *Following {
	f := &Following{Generation: g}
	if e, is := g.Encoder.(*hybrid.Encoder); is && e.Views().Beside() > 0 {
		f.encoder = e.Following()
	}
	return f
}

// TakesVectors says whether vectors of nodes change embeddings, or what they say that nodes are ordered with.
func (f *Following) TakesVectors() bool { return len(f.Views().Vectors) > 0 || f.Directions() != nil }

// Directions make rows of what nodes are ordered with, nil for a generation that knows of none: then orders change no
// embedding.
func (f *Following) Directions() *hybrid.Directions {
	return f.Views().Directions
}

// Views are those of the encoder, none for one all of whose views are of the text.
func (f *Following) Views() hybrid.Views {
	if f.encoder == nil {
		return hybrid.Views{}
	}
	return f.encoder.Views()
}

// OrderedRows calls visit with some items of orders, each with the row that nodes have for what it is ordered with, nil
// for none. numbers are those of Directions, by item. It is for a generation that knows these, and so are FollowOrders
// and Ordered.
func (f *Following) OrderedRows(orders *pairs.Live, items, numbers []int32, visit func(item int32, row []uint16)) {
	var of []int32
	for k, associated := range orders.Associations(items, hybrid.MostAssociations) {
		of = of[:0]
		for _, j := range associated.Index {
			of = append(of, numbers[j])
		}
		visit(items[k], f.encoder.OrderedRow(of, associated.Value, orders.Support(items[k])))
	}
}

// FollowOrders lets a node have a row.
func (f *Following) FollowOrders(id string, row []uint16) { f.encoder.FollowOrders(id, row) }

// Ordered returns the row that a node is embedded with now, and that of the generation's cut.
func (f *Following) Ordered(id string) (now, own []uint16) { return f.encoder.Ordered(id) }

// Follow lets a node have the vectors that an input states in a row that was committed after the cut, and what it says
// that the node is ordered with.
func (f *Following) Follow(r *rows.Vectors) {
	switch row, own, ok := f.SaysOrdered(r); {
	case !ok:
		f.followVectors(r)
	case own:
		f.encoder.UnfollowOrders(r.NodeID)
	default:
		f.encoder.FollowOrders(r.NodeID, row)
	}
}

// SaysOrdered returns what vectors say that their node is ordered with, if that is what they say. Of a row by the
// directions of another generation nothing is known but that the generation's own counts.
func (f *Following) SaysOrdered(r *rows.Vectors) (row []uint16, own, ok bool) {
	of, row, ok := r.Ordered()
	switch {
	case f.Directions() == nil:
		return nil, false, false
	case ok:
		f.ordered = r.Input
		return row, of != f.Doc.Generation, true
	}
	return nil, true, f.ordered != 0 && r.Input == f.ordered
}

// followVectors is Follow without what nodes are ordered with.
func (f *Following) followVectors(r *rows.Vectors) {
	if f.encoder == nil {
		return
	}
	vectors := make(map[string][]float32, len(r.Names))
	for i, name := range r.Names {
		vectors[name] = r.Numbers(i)
	}
	f.encoder.Follow(r.NodeID, r.Input, vectors)
}

// Encode writes the embeddings of nodes, as they are now, to out, one after the other.
func (f *Following) Encode(ids, texts []string, out []float32) error {
	if f.encoder == nil {
		return f.Generation.Encode(ids, texts, out)
	}
	return train.EncodeItems(f.encoder, ids, texts, nil, out)
}

// Parts returns the parts of the cosines of q, of length 1, and the embeddings of nodes as they are now, of which q has
// the first numbers.
func (f *Following) Parts(ids, texts []string, q []float32) ([]parts.Cosine, error) {
	if f.encoder == nil {
		return parts.Split(f.Encoder, ids, texts, q)
	}
	return parts.Split(f.encoder, ids, texts, q)
}

// EmbedNodes makes embeddings of nodes, as they are now, in the form that the generation stores.
func (f *Following) EmbedNodes(ids, texts []string) ([]embedding.Record, error) {
	return f.embed(texts, func(out []float32) error { return f.Encode(ids, texts, out) })
}
