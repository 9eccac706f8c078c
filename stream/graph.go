package stream

import (
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"giantstream/sink/rows"
)

// Graph is a shard's graph as its local state has it, for those who look at a
// shard that does not run. Nothing is written.
type Graph struct{ state state }

// OpenGraph opens a shard's state directory, which no Shard may have open.
func OpenGraph(dir string) (*Graph, error) {
	db, err := pebble.Open(dir, &pebble.Options{ReadOnly: true, ErrorIfNotExists: true,
		Logger: &engineLog{log: slog.New(slog.DiscardHandler), now: time.Now}})
	if err != nil {
		return nil, fmt.Errorf("open the state in %s: %w", dir, err)
	}
	g := &Graph{state{db: db, dir: dir, pending: pending{db: db, memory: &windowMemory{}}}}
	if err := g.state.readMeta(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return g, nil
}

// Applied returns, per topic, the offset up to which records are in the state.
func (g *Graph) Applied() map[string]int64 { return maps.Clone(g.state.meta.Applied) }

// Rows yields the row of every node, in ascending id order, as a window would
// commit it; deleted nodes included, features and targets left out.
func (g *Graph) Rows() iter.Seq2[rows.Row, error] {
	return func(yield func(rows.Row, error) bool) {
		if err := g.rows(yield); err != nil {
			yield(rows.Row{}, fmt.Errorf("state in %s: %w", g.state.dir, err))
		}
	}
}

func (g *Graph) rows(yield func(rows.Row, error) bool) (err error) {
	r, err := g.state.newRowReader()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	heads, err := g.state.db.NewIter(&pebble.IterOptions{LowerBound: []byte{spaceHead}, UpperBound: []byte{spaceHead + 1}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, heads.Close()) }()
	for ok := heads.First(); ok; ok = heads.Next() {
		row, known, err := r.row(string(heads.Key()[1:]), nil)
		if err != nil {
			return err
		}
		if known && !yield(row, nil) {
			return nil
		}
	}
	return heads.Error()
}

// Close lets go of the state.
func (g *Graph) Close() error { return g.state.db.Close() }
