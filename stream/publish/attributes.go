package publish

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"giantstream/sink"
	"giantstream/sink/embedding"
	"giantstream/stream/commitlog"
)

// alone are the attributes of a segment that changed alone: the newest of each node, with their places in rows.
type alone struct {
	rows []commitlog.AttributesRow
	at   map[string]int
}

// attributesAlone yields the attributes that changed alone in a segment, nothing where none are published.
func (m *Model) attributesAlone(ctx context.Context, store sink.Store, s *commitlog.Segment) (
	all iter.Seq2[commitlog.AttributesRow, error]) {
	if len(m.Attributes) == 0 {
		return func(func(commitlog.AttributesRow, error) bool) {}
	}
	return s.Attributes(ctx, store)
}

// readAlone holds the attributes of a segment that changed alone in memory.
func (b *batcher) readAlone(ctx context.Context, s *commitlog.Segment) (a alone, err error) {
	a.at = map[string]int{}
	for r, err := range b.model.attributesAlone(ctx, b.opts.Store, s) {
		if err != nil {
			return a, err
		}
		r.NodeID, r.Attributes.Attributes = strings.Clone(r.NodeID), strings.Clone(r.Attributes.Attributes)
		a.at[r.NodeID] = len(a.rows)
		a.rows = append(a.rows, r)
	}
	return a, nil
}

// precede forgets the attributes of a row's node if the row is newer, and so has its attributes.
func (a *alone) precede(r commitlog.Row) {
	if i, ok := a.at[r.NodeID]; ok && a.rows[i].Seq < r.Seq {
		delete(a.at, r.NodeID)
	}
}

// putAttributes adds the attributes of a node, unless newer ones follow that the topic may have, and sends what has
// been gathered if that is enough.
func (b *batcher) putAttributes(ctx context.Context, r commitlog.Row) error {
	if len(b.model.Attributes) == 0 || b.ahead.attributesAfter(r.NodeID, r.Seq) {
		return nil
	}
	a, err := b.attributesOf(r, b.model)
	if err != nil {
		return err
	}
	if b.attributes = append(b.attributes, a); len(b.attributes) < batch {
		return nil
	}
	return b.send(ctx)
}

// publishAttributes publishes the attributes that the shard's nodes have at the cut of a generation, whose embeddings
// have been sent, unless newer ones follow. If none are to be published any more, it takes those of all nodes from the
// topic.
func (f *Follower) publishAttributes(ctx context.Context, model *Model, changed *newest) error {
	cut := commitlog.Cut{f.opts.Shard: model.Cut}
	if len(model.Attributes) == 0 {
		if f.cursor.Attributes == "" {
			return nil
		}
		head, err := commitlog.Head(ctx, f.opts.Store, f.opts.Shard)
		if err != nil {
			return err
		}
		if head != nil {
			cut[f.opts.Shard] = head.Seq
		}
	}
	var out []embedding.Attributes
	for r, err := range cut.Attributes(ctx, f.opts.Store, f.opts.Shard) {
		if err != nil {
			return err
		}
		if len(model.Attributes) > 0 && changed.attributesAfter(r.NodeID, model.Cut) {
			continue
		}
		a, err := f.attributesOf(r, model)
		if err != nil {
			return err
		}
		if out = append(out, a); len(out) == batch {
			if err := f.publishAll(ctx, out); err != nil {
				return err
			}
			out = out[:0]
		}
	}
	return f.publishAll(ctx, out)
}

func (f *Follower) publishAll(ctx context.Context, all []embedding.Attributes) error {
	if len(all) == 0 {
		return nil
	}
	f.sending, f.touched = true, true
	return f.opts.Attributes(ctx, all)
}

// attributesOf returns what is published of a row's attributes.
func (f *Follower) attributesOf(r commitlog.Row, model *Model) (embedding.Attributes, error) {
	out := embedding.Attributes{NodeID: strings.Clone(r.NodeID)}
	object, err := named(r.Attributes, model.Attributes)
	if err != nil {
		return out, fmt.Errorf("attributes of %q, shard %d, manifest %d: %w", r.NodeID, f.opts.Shard, r.Seq, err)
	}
	if object != "" && !r.Deleted {
		out.Attributes, out.EventTime, out.Shard, out.Seq = object, r.EventTime, f.opts.Shard, r.Seq
	}
	return out, nil
}

// named returns what a JSON object has of some names, in their order, "" for nothing.
func named(object string, names []string) (string, error) {
	if object == "" || len(names) == 0 {
		return "", nil
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal([]byte(object), &all); err != nil {
		return "", err
	}
	b := []byte{'{'}
	for _, name := range names {
		value, ok := all[name]
		if !ok {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(b, '"') // a name has no character that is escaped
		b = append(b, name...)
		b = append(append(b, '"', ':'), value...)
	}
	if len(b) == 1 {
		return "", nil
	}
	return string(append(b, '}')), nil
}
