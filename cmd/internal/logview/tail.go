package logview

import (
	"context"
	"errors"
	"iter"
	"strings"

	"giantstream/sink"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	"giantstream/train/answer"
)

// Tail is what a store's commit log says after a cut. It implements answer.Log.
type Tail struct{ Store sink.Store }

// Stretches yields segments of the log, with the columns that an answer.Log has.
func (t Tail) Stretches(ctx context.Context, shard int, after int64) iter.Seq2[answer.Stretch, error] {
	return t.stretches(ctx, shard, after, rows.ColNodeID, rows.ColText, rows.ColDeleted, rows.ColAttributes)
}

// Attributes yields all segments of the log.
func (t Tail) Attributes(ctx context.Context, shard int) iter.Seq2[answer.Stretch, error] {
	return t.stretches(ctx, shard, 0, rows.ColNodeID, rows.ColDeleted, rows.ColAttributes)
}

// Offsets reads a manifest.
func (t Tail) Offsets(ctx context.Context, shard int, seq int64) (map[string]int64, error) {
	m, err := commitlog.ReadManifest(ctx, t.Store, shard, seq)
	if errors.Is(err, sink.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return m.BrokerOffsets(), nil
}

func (t Tail) stretches(ctx context.Context, shard int, after int64, columns ...string) (
	all iter.Seq2[answer.Stretch, error]) {
	return func(yield func(answer.Stretch, error) bool) {
		for segment, err := range commitlog.Segments(ctx, t.Store, shard, after, 0) {
			if err != nil {
				yield(answer.Stretch{}, err)
				return
			}
			if !yield(answer.Stretch{To: segment.To, Rows: t.rows(ctx, segment, columns),
				Orders: segment.Orders(ctx, t.Store), Horizon: segment.Horizon(), Vectors: t.vectors(ctx, segment),
				Next: segment.Next}, nil) {
				return
			}
		}
	}
}

func (t Tail) vectors(ctx context.Context, segment *commitlog.Segment) iter.Seq2[rows.Vectors, error] {
	return func(yield func(rows.Vectors, error) bool) {
		for r, err := range segment.Vectors(ctx, t.Store) {
			if !yield(r.Vectors, err) || err != nil {
				return
			}
		}
	}
}

// rows yields the rows of a segment with the attributes that were committed after them, and then the attributes that
// changed alone. Of these it holds the segment's in memory.
func (t Tail) rows(ctx context.Context, segment *commitlog.Segment, columns []string) iter.Seq2[answer.Row, error] {
	return func(yield func(answer.Row, error) bool) {
		alone := map[string]commitlog.AttributesRow{}
		for a, err := range segment.Attributes(ctx, t.Store) {
			if err != nil {
				yield(answer.Row{}, err)
				return
			}
			a.NodeID, a.Attributes.Attributes = strings.Clone(a.NodeID), strings.Clone(a.Attributes.Attributes)
			alone[a.NodeID] = a
		}
		for r, err := range segment.Rows(ctx, t.Store, rows.ReadOptions{Columns: columns}) {
			if later, ok := alone[r.NodeID]; ok {
				if later.Seq > r.Seq {
					r.Attributes = later.Attributes.Attributes
				}
				delete(alone, later.NodeID)
			}
			if !yield(answer.Row{Row: r.Row}, err) || err != nil {
				return
			}
		}
		for id, a := range alone {
			row := rows.Row{NodeID: id, Attributes: a.Attributes.Attributes}
			if !yield(answer.Row{Row: row, AttributesAlone: true}, nil) {
				return
			}
		}
	}
}
