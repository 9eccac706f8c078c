package rowsort

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"

	"giantstream/internal/tempfile"
	"giantstream/sink/rows"
)

// ErrUnordered: a run is not in ascending order of distinct ids.
var ErrUnordered = errors.New("rows are out of order")

// maxFanIn is how many sorted runs are read at once. A log with more windows is merged in several
// passes over temporary files.
const maxFanIn = 64

// Run is a sequence of rows in ascending order of node id, and its length.
type Run struct {
	Rows int64
	Seq  iter.Seq2[rows.Row, error]
}

// Merge merges sorted runs of distinct ids into one sorted sequence. It merges the shortest
// runs first, so that long ones are read once.
func Merge(ctx context.Context, runs []Run) iter.Seq2[rows.Row, error] {
	return func(yield func(rows.Row, error) bool) {
		var files Files
		defer files.Close()
		for len(runs) > maxFanIn {
			slices.SortStableFunc(runs, func(a, b Run) int { return cmp.Compare(a.Rows, b.Rows) })
			n := min(maxFanIn, len(runs)-maxFanIn+1)
			f, merged, err := spill(ctx, runs[:n])
			if f != nil {
				files = append(files, f)
			}
			if err != nil {
				yield(rows.Row{}, fmt.Errorf("merge in %s: %w", os.TempDir(), err))
				return
			}
			runs = append(runs[n:], merged)
		}
		mergeOnce(runs, yield)
	}
}

// Files are temporary files with runs. Close removes them.
type Files []*tempfile.File

// Close closes the files, and thereby removes them.
func (files *Files) Close() {
	for _, f := range *files {
		_ = f.Close() // all that was written has been read
	}
}

// sortChunk is how many bytes of rows are sorted in memory.
const sortChunk = 16 << 20

// Sort sorts rows of distinct ids into runs. All runs but the last lie in temporary files.
func Sort(ctx context.Context, in iter.Seq2[rows.Row, error], files *Files) ([]Run, error) {
	var (
		runs  []Run
		chunk []rows.Row
		size  int64
	)
	sorted := func() Run {
		slices.SortFunc(chunk, func(a, b rows.Row) int { return cmp.Compare(a.NodeID, b.NodeID) })
		all := chunk
		return Run{int64(len(all)), func(yield func(rows.Row, error) bool) {
			for _, row := range all {
				if !yield(row, nil) {
					return
				}
			}
		}}
	}
	for row, err := range in {
		if err != nil {
			return nil, err
		}
		if size > sortChunk {
			f, spilled, err := spill(ctx, []Run{sorted()})
			if f != nil {
				*files = append(*files, f)
			}
			if err != nil {
				return nil, fmt.Errorf("sort in %s: %w", os.TempDir(), err)
			}
			runs, chunk, size = append(runs, spilled), nil, 0
		}
		chunk = append(chunk, row)
		size += row.MemoryBytes()
	}
	return append(runs, sorted()), nil
}

// spill merges runs into a temporary file.
func spill(ctx context.Context, runs []Run) (*tempfile.File, Run, error) {
	f, err := tempfile.Create("giantstream-merge-*.parquet")
	if err != nil {
		return nil, Run{}, err
	}
	w := rows.NewWriter(f)
	mergeOnce(runs, func(row rows.Row, rerr error) bool {
		if err = rerr; err == nil {
			err = errors.Join(ctx.Err(), w.Write([]rows.Row{row}))
		}
		return err == nil
	})
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return f, Run{}, err
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return f, Run{}, err
	}
	return f, Run{w.Rows(), rows.ReadFrom(f, size, rows.ReadOptions{})}, nil
}

// mergeOnce merges runs that are all read at once. It yields an error last.
func mergeOnce(runs []Run, yield func(rows.Row, error) bool) {
	h := make(cursors, 0, len(runs))
	defer func() {
		for _, c := range h {
			c.stop()
		}
	}()
	for _, r := range runs {
		c := &runCursor{}
		c.next, c.stop = iter.Pull2(r.Seq)
		h = append(h, c)
		if err := c.advance(); err != nil {
			yield(rows.Row{}, err)
			return
		}
	}
	heap.Init(&h)
	for len(h) > 0 && !h[0].done {
		c := h[0]
		if !yield(c.row, nil) {
			return
		}
		if err := c.advance(); err != nil {
			yield(rows.Row{}, err)
			return
		}
		heap.Fix(&h, 0)
	}
}

// runCursor is a run while it is read.
type runCursor struct {
	row  rows.Row
	done bool
	next func() (rows.Row, error, bool)
	stop func()
}

func (c *runCursor) advance() error {
	row, err, ok := c.next()
	if err != nil {
		return err
	}
	if ok && row.NodeID <= c.row.NodeID && c.row.NodeID != "" {
		return fmt.Errorf("%w: at node %q", ErrUnordered, row.NodeID)
	}
	c.row, c.done = row, !ok
	return nil
}

// cursors is a heap by node id. Cursors that are done come last.
type cursors []*runCursor

func (h cursors) Len() int { return len(h) }
func (h cursors) Less(i, j int) bool {
	if h[i].done || h[j].done {
		return !h[i].done
	}
	return h[i].row.NodeID < h[j].row.NodeID
}
func (h cursors) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *cursors) Push(x any)   { *h = append(*h, x.(*runCursor)) }
func (h *cursors) Pop() any {
	last := len(*h) - 1
	c := (*h)[last]
	*h = (*h)[:last]
	return c
}
