package logview

import (
	"context"
	"iter"

	"giantstream/sink"
	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	"giantstream/train/answer"
)

// Tail is what a store's commit log says after a cut. It implements answer.Log.
type Tail struct{ Store sink.Store }

// Stretches yields segments of the log, with the columns that an answer.Log has.
func (t Tail) Stretches(ctx context.Context, shard int, after int64) iter.Seq2[answer.Stretch, error] {
	columns := []string{rows.ColNodeID, rows.ColText, rows.ColDeleted}
	return func(yield func(answer.Stretch, error) bool) {
		for segment, err := range commitlog.Segments(ctx, t.Store, shard, after, 0) {
			if err != nil {
				yield(answer.Stretch{}, err)
				return
			}
			read := func(yield func(rows.Row, error) bool) {
				for r, err := range segment.Rows(ctx, t.Store, rows.ReadOptions{Columns: columns}) {
					if !yield(r.Row, err) || err != nil {
						return
					}
				}
			}
			if !yield(answer.Stretch{To: segment.To, Rows: read}, nil) {
				return
			}
		}
	}
}
