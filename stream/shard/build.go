package shard

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"maps"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"giantstream/sink/rows"
	"giantstream/stream/shard/engine"
)

// rows yields the rows of nodes that are due in a window, in ascending id order, as the state has them now.
// One row is in memory at a time.
func (s *state) rows(window int64) iter.Seq2[rows.Row, error] {
	return dueRows(s, window, nodeMarks, (*rowReader).row)
}

// attributeRows is rows for the nodes of which nothing but attributes and event time has changed.
func (s *state) attributeRows(window int64) iter.Seq2[rows.Attributes, error] {
	return dueRows(s, window, string(markAttributes), (*rowReader).attributeRow)
}

func dueRows[R any](s *state, window int64, kinds string,
	build func(r *rowReader, id string, n *pendingNode) (row R, known bool, err error)) iter.Seq2[R, error] {
	return func(yield func(R, error) bool) {
		if err := yieldRows(s, window, kinds, build, yield); err != nil && !errors.Is(err, errStopped) {
			var none R
			yield(none, err)
		}
	}
}

// errStopped ends a walk whose consumer wants no more.
var errStopped = errors.New("stopped")

// yieldRows builds a row of every node that has a mark of some kinds.
func yieldRows[R any](s *state, window int64, kinds string,
	build func(r *rowReader, id string, n *pendingNode) (row R, known bool, err error),
	yield func(R, error) bool) (err error) {
	defer s.guard.Catch(&err)
	r, err := s.newRowReader()
	if err != nil {
		return engine.Failure(err)
	}
	defer func() { err = errors.Join(err, engine.Failure(r.close())) }()
	return s.eachMark(window, kinds, func(id string, n *pendingNode) error {
		row, known, err := build(r, id, n)
		if err != nil {
			return fmt.Errorf("build the row of node %q: %w", id, engine.Failure(err))
		}
		if known && !yield(row, nil) {
			return errStopped
		}
		return nil
	})
}

// rowReader builds rows of nodes in ascending id order, from the state as it was when the reader
// was made. Its iterators only move forward, which spares the engine a search from the top for each
// node.
type rowReader struct {
	headers, texts, links *pebble.Iterator
	stated                *pebble.Iterator // nil if the files have no attributes
	pending               *pending
	key                   []byte // scratch
}

func (s *state) newRowReader() (*rowReader, error) {
	r := &rowReader{pending: &s.pending}
	for space, it := range map[byte]**pebble.Iterator{
		spaceHeader: &r.headers, spaceText: &r.texts, spaceAdjacency: &r.links,
	} {
		var err error
		if *it, err = iterate(s.db, space); err != nil {
			return nil, errors.Join(fmt.Errorf("read nodes: %w", err), r.close())
		}
	}
	var err error
	if r.stated, err = iterateStated(s.db); err != nil {
		return nil, errors.Join(fmt.Errorf("read attributes: %w", err), r.close())
	}
	return r, nil
}

func (r *rowReader) close() (err error) {
	for _, it := range []*pebble.Iterator{r.headers, r.texts, r.links, r.stated} {
		if it != nil {
			err = errors.Join(err, it.Close())
		}
	}
	return err
}

// seekExact moves an iterator forward to a key, and returns the key's value, which is valid until the next move.
func seekExact(it *pebble.Iterator, key []byte) (value []byte, ok bool, err error) {
	if !it.SeekGE(key) || !bytes.Equal(it.Key(), key) {
		return nil, false, it.Error()
	}
	value, err = it.ValueAndErr()
	return value, err == nil, err
}

// row builds one node's row, from the node's pending facts and, for the rest, from the files. The
// event time is that of the newest statement about the node, its attributes or one of its links, retracted
// links included; for a deleted node it is that of the deletion. A node that was never put is not
// known and has no row.
func (r *rowReader) row(id string, p *pendingNode) (row rows.Row, known bool, err error) {
	row.NodeID = id
	h, err := r.header(id, p)
	if err != nil || !h.known {
		return row, false, err
	}
	row.EventTime = h.at.EventTime
	if !h.exists() {
		row.Deleted = true
		return row, true, nil
	}
	if row.Text, row.Class, err = r.text(id, p); err != nil {
		return row, false, err
	}
	if row.Attributes, row.EventTime, err = r.attributes(id, p, row.EventTime); err != nil {
		return row, false, err
	}
	label, links := "", []rows.Link{} // those to one label, by kind
	row.EventTime, err = r.eachLink(id, p, row.EventTime, func(far string, a *adjacency) {
		s := a.shown()
		if !s.label {
			return
		}
		other, kind := splitFarEnd(far)
		if other != label {
			row.AddLabel(label, links...)
			label, links = other, links[:0]
		}
		links = append(links, rows.Link{Kind: kind.Name, Weight: s.weight.Float(), Time: s.time,
			Plain: kind.Name == "" && !s.weight.Stated()})
	})
	row.AddLabel(label, links...)
	return row, true, err
}

// eachLink calls f with the links of a node, ascending, and returns the newest event time among them and a given one.
func (r *rowReader) eachLink(id string, p *pendingNode, eventTime int64, f func(far string, a *adjacency)) (
	newest int64, err error) {
	r.key = adjacencyPrefix(r.key, id)
	it := r.links
	if !r.pending.hasLinks(r.key, p) {
		it = nil
	}
	newest = eventTime
	err = eachLink(it, r.key, p, func(far string, a adjacency) error {
		if t, ok := a.eventTime(); ok {
			newest = max(newest, t)
		}
		f(far, &a)
		return nil
	})
	return newest, err
}

func (r *rowReader) header(id string, p *pendingNode) (nodeHeader, error) {
	if p != nil && p.headerRead {
		return p.header, nil
	}
	r.key = headerKey(r.key, id)
	data, ok, err := seekExact(r.headers, r.key)
	if err != nil || !ok {
		return nodeHeader{}, err
	}
	return decodeHeader(data)
}

func (r *rowReader) text(id string, p *pendingNode) (text, class string, err error) {
	if p != nil && p.facts != nil && p.facts.textSet {
		return p.facts.text, p.facts.class, nil
	}
	r.key = textKey(r.key, id)
	data, ok, err := seekExact(r.texts, r.key)
	if err == nil && !ok {
		err = fmt.Errorf("%w: node has no text", errCorruptState)
	}
	if err != nil {
		return "", "", err
	}
	return decodeText(data)
}

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
