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
	links, err := s.db.NewIter(&pebble.IterOptions{
		LowerBound: []byte{spaceAdjacency}, UpperBound: []byte{spaceAdjacency + 1},
	})
	if err != nil {
		return fmt.Errorf("read adjacency: %w", err)
	}
	defer func() {
		if cerr := links.Close(); err == nil {
			err = cerr
		}
	}()
	return s.eachMark(window, func(id string) error {
		row, known, err := s.row(id, links)
		if err != nil {
			return fmt.Errorf("build the row of node %q: %w", id, err)
		}
		if known && !yield(row, nil) {
			return errStopped
		}
		return nil
	})
}

// row builds one node's row. The event time of a node is that of the newest
// statement about it or about any of its links, be it one that took the link
// back; of a deleted node, that of the deletion. A node that was never put is not
// known and has no row.
func (s *state) row(id string, links *pebble.Iterator) (row rows.Row, known bool, err error) {
	row.NodeID = id
	data, ok, err := get(s.db, headKey(nil, id))
	if err != nil || !ok {
		return row, false, err
	}
	h, err := decodeHead(data)
	if err != nil || !h.known {
		return row, false, err
	}
	row.EventTime = h.at.EventTime
	if !h.exists() {
		row.Deleted = true
		return row, true, nil
	}
	if data, ok, err = get(s.db, textKey(nil, id)); err != nil {
		return row, false, err
	}
	if !ok {
		return row, false, fmt.Errorf("%w: node has no text", ErrCorruptState)
	}
	if row.Text, row.Class, err = decodeText(data); err != nil {
		return row, false, err
	}
	prefix := adjacencyPrefix(nil, id)
	for ok := links.SeekGE(prefix); ok && bytes.HasPrefix(links.Key(), prefix); ok = links.Next() {
		data, err := links.ValueAndErr()
		if err != nil {
			return row, false, err
		}
		a, err := decodeAdjacency(data)
		if err != nil {
			return row, false, err
		}
		if t, ok := a.eventTime(); ok {
			row.EventTime = max(row.EventTime, t)
		}
		if a.label() {
			row.Labels = append(row.Labels, string(links.Key()[len(prefix):]))
		}
	}
	return row, true, links.Error()
}
