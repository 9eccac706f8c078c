package stream

import (
	"bytes"
	"errors"
	"fmt"
	"iter"

	"github.com/cockroachdb/pebble/v2"

	"giantstream/sink/rows"
)

// rows yields the row of every node marked in a window, in ascending id order,
// as the state has it now. One row is in memory at a time.
func (s *state) rows(window int64) iter.Seq2[rows.Row, error] {
	return func(yield func(rows.Row, error) bool) {
		if err := s.yieldRows(window, yield); err != nil && !errors.Is(err, errStopped) {
			yield(rows.Row{}, err)
		}
	}
}

// errStopped ends a walk whose consumer wants no more.
var errStopped = errors.New("stopped")

func (s *state) yieldRows(window int64, yield func(rows.Row, error) bool) (err error) {
	r, err := s.newRowReader()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	return s.eachMark(window, func(id string) error {
		row, known, err := r.row(id, s.pending.nodes[id])
		if err != nil {
			return fmt.Errorf("build the row of node %q: %w", id, err)
		}
		if known && !yield(row, nil) {
			return errStopped
		}
		return nil
	})
}

// rowReader builds the rows of nodes that are asked for in ascending id order,
// from the state as it was when the reader was made. Its iterators only move
// forward, which spares the engine a search from the top for every node.
type rowReader struct {
	heads, texts, links *pebble.Iterator
	key                 []byte // scratch
}

func (s *state) newRowReader() (*rowReader, error) {
	r := &rowReader{}
	for _, it := range []struct {
		in **pebble.Iterator
		of byte
	}{{&r.heads, spaceHead}, {&r.texts, spaceText}, {&r.links, spaceAdjacency}} {
		var err error
		if *it.in, err = s.db.NewIter(&pebble.IterOptions{LowerBound: []byte{it.of}, UpperBound: []byte{it.of + 1}}); err != nil {
			return nil, errors.Join(fmt.Errorf("read nodes: %w", err), r.close())
		}
	}
	return r, nil
}

func (r *rowReader) close() (err error) {
	for _, it := range []*pebble.Iterator{r.heads, r.texts, r.links} {
		if it != nil {
			err = errors.Join(err, it.Close())
		}
	}
	return err
}

// at moves an iterator forward to a key. The value is valid until the next move.
func at(it *pebble.Iterator, key []byte) (value []byte, ok bool, err error) {
	if !it.SeekGE(key) || !bytes.Equal(it.Key(), key) {
		return nil, false, it.Error()
	}
	value, err = it.ValueAndErr()
	return value, err == nil, err
}

// row builds one node's row, from what is pending of it and, for the rest, from
// the files. The event time of a node is that of the newest statement about it or
// about any of its links, be it one that took the link back; of a deleted node,
// that of the deletion. A node that was never put is not known and has no row.
func (r *rowReader) row(id string, p *pendingNode) (row rows.Row, known bool, err error) {
	row.NodeID = id
	h, err := r.head(id, p)
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
	r.key = adjacencyPrefix(r.key, id)
	return row, true, eachLink(r.links, r.key, p, func(other string, a adjacency) error {
		if t, ok := a.eventTime(); ok {
			row.EventTime = max(row.EventTime, t)
		}
		if a.label() {
			row.Labels = append(row.Labels, other)
		}
		return nil
	})
}

func (r *rowReader) head(id string, p *pendingNode) (head, error) {
	if p != nil && p.headKnown {
		return p.head, nil
	}
	r.key = headKey(r.key, id)
	data, ok, err := at(r.heads, r.key)
	if err != nil || !ok {
		return head{}, err
	}
	return decodeHead(data)
}

func (r *rowReader) text(id string, p *pendingNode) (text, class string, err error) {
	if p != nil && p.textSet {
		return p.text, p.class, nil
	}
	r.key = textKey(r.key, id)
	data, ok, err := at(r.texts, r.key)
	if err == nil && !ok {
		err = fmt.Errorf("%w: node has no text", ErrCorruptState)
	}
	if err != nil {
		return "", "", err
	}
	return decodeText(data)
}
