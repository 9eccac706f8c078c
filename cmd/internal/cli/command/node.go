package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"giantstream/ingest/client"
	"giantstream/sink"
	"giantstream/sink/embedding"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	"giantstream/train/generation"
)

// NodeView is everything that the store has about one node.
type NodeView struct {
	Shard int       `json:"shard"`
	Row   *rows.Row `json:"row,omitempty"`
	// Attributes are those of the row, which has them as a string.
	Attributes json.RawMessage   `json:"attributes,omitempty"`
	Seq        int64             `json:"seq,omitempty"`
	Embedding  *embedding.Record `json:"embedding,omitempty"`
	// Ordered is nil if no order has the node.
	Ordered *Ordered `json:"ordered,omitempty"`
	// Vectors are those that records have stated, of all inputs.
	Vectors []VectorView `json:"vectors,omitempty"`
	// Cut names the lists that are shown in part.
	Cut []string `json:"cut,omitempty"`
}

// maxListed is how many elements of a list are shown of a node.
const maxListed = 8

// maxText is how many characters of its text are.
const maxText = 2000

// Shorten cuts the long lists of a node, and says how long they are.
func (v *NodeView) Shorten() {
	cut := func(name string, n int) {
		if n > maxListed {
			v.Cut = append(v.Cut, fmt.Sprintf("%s: the first %d of %d (--full shows all)", name, maxListed, n))
		}
	}
	if r := v.Row; r != nil {
		cut("labels", len(r.Labels))
		r.Labels = r.Labels[:min(len(r.Labels), maxListed)]
		cut("links with a kind or weight", len(r.LinkEnds))
		links := min(len(r.LinkEnds), maxListed)
		r.LinkEnds, r.LinkWeights, r.LinkTimes = r.LinkEnds[:links], r.LinkWeights[:links], r.LinkTimes[:links]
		r.LinkKinds = r.LinkKinds[:min(len(r.LinkKinds), links)]
		cut("features", len(r.FeatureIndices))
		r.FeatureIndices = r.FeatureIndices[:min(len(r.FeatureIndices), maxListed)]
		r.FeatureValues = r.FeatureValues[:min(len(r.FeatureValues), maxListed)]
		for i, level := range r.Targets {
			cut(fmt.Sprintf("targets of level %d", i), len(level))
			r.Targets[i] = level[:min(len(level), maxListed)]
		}
		for i, level := range r.TargetCounts {
			r.TargetCounts[i] = level[:min(len(level), maxListed)]
		}
		if text := []rune(r.Text); len(text) > maxText {
			v.Cut = append(v.Cut, fmt.Sprintf("text: the first %d of %d characters (--full shows all)", maxText,
				len(text)))
			r.Text = string(text[:maxText])
		}
	}
	if o := v.Ordered; o != nil {
		cut("partners", len(o.Partners))
		o.Partners = o.Partners[:min(len(o.Partners), maxListed)]
	}
	if e := v.Embedding; e != nil {
		cut("vector", len(e.Vector))
		e.Vector = e.Vector[:min(len(e.Vector), maxListed)]
	}
}

// FindNode returns a node's newest committed row, and its embedding of the newest generation if it has one.
func FindNode(ctx context.Context, store sink.Store, shards int, id string) (*NodeView, error) {
	v := &NodeView{Shard: client.Partition([]byte(id), shards)}
	cut, err := commitlog.CurrentCut(ctx, store, shards)
	if err != nil {
		return nil, err
	}
	for r, err := range cut.Newest(ctx, store, v.Shard) {
		if err != nil {
			return nil, err
		}
		if r.NodeID == id {
			v.Row, v.Seq = &r.Row, r.Seq
			v.Attributes, v.Row.Attributes = json.RawMessage(r.Attributes), ""
			break
		}
	}
	if v.Row == nil {
		return nil, fmt.Errorf("node %q has no committed row in shard %d; ids are compared byte by byte", id, v.Shard)
	}
	doc, err := generation.Current(ctx, store)
	if errors.Is(err, generation.ErrNone) {
		return v, nil
	}
	if err != nil {
		return nil, err
	}
	for _, part := range doc.Embeddings {
		if part.Shard != v.Shard {
			continue
		}
		for r, err := range embedding.ReadParquet(ctx, store, part.Ref()) {
			if err != nil {
				return nil, err
			}
			if r.NodeID == id {
				v.Embedding = &r
				return v, nil
			}
		}
	}
	return v, nil
}
