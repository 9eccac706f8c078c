package forget

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"giantstream/internal/ambient"
)

// Tables are what a sink has made of the embeddings topic.
type Tables interface {
	// Remaining returns the tables that have a row of any of the nodes, and of how many.
	Remaining(ctx context.Context, nodes []string) (map[string]int, error)
}

// Tables asks a sink for rows of the ids. kind is what the report calls it, do says what rids it of them. A sink that
// does not answer is in the report as unread.
func (s *Scanner) Tables(ctx context.Context, in Tables, kind, do string, progress ambient.Progress) error {
	ambient.OrDiscard(progress).Stage("scan the "+kind, 0)
	var ids []string
	for _, w := range s.needles.all {
		if w.id {
			ids = append(ids, w.word)
		}
	}
	left, err := in.Remaining(ctx, ids)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("scan the %s: %w", kind, ctx.Err())
	case err != nil:
		s.Unread(kind, err)
	}
	for _, table := range slices.Sorted(maps.Keys(left)) {
		s.report.Findings = append(s.report.Findings, Finding{Place: table, Kind: kind, Where: []string{"id in rows"},
			IDs: left[table], Do: do})
	}
	s.report.Kinds[kind] += int64(len(left))
	return nil
}
