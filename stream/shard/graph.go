package shard

import (
	"errors"
	"fmt"
	"iter"
	"maps"

	"github.com/cockroachdb/pebble/v2/vfs"

	"giantstream/sink/rows"
	"giantstream/stream/shard/engine"
)

// Graph is a shard's graph in its local state, for looking at a shard that does not run. It is
// read-only.
type Graph struct{ state state }

// OpenGraph opens a shard's state directory, which no Shard may have open.
func OpenGraph(dir string) (*Graph, error) {
	db, err := engine.OpenToRead(dir, vfs.Default)
	if err != nil {
		return nil, fmt.Errorf("open the state in %s: %w", dir, err)
	}
	g := &Graph{state{db: db, dir: dir}}
	g.state.pending.db, g.state.pending.memory = db, &windowMemory{}
	if err := g.state.readMeta(); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return g, nil
}

// Applied returns, per topic, the offset below which every record is in the state.
func (g *Graph) Applied() map[string]int64 { return maps.Clone(g.state.meta.Applied) }

// Rows yields the row of every node without features and targets, in ascending id order, as a
// window would commit it. Deleted nodes are included.
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
	heads, err := iterate(g.state.db, spaceHeader)
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

// Close closes the state.
func (g *Graph) Close() error { return g.state.db.Close() }
