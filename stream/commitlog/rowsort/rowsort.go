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

// ErrUnordered: a run is not in ascending order of distinct keys.
var ErrUnordered = errors.New("rows are out of order")

// maxFanIn is how many sorted runs are read at once. A log with more windows is merged in several
// passes over temporary files.
const maxFanIn = 64

// Run is a sequence of rows in ascending order of their keys, and its length.
type Run[R any] struct {
	Rows int64
	Seq  iter.Seq2[R, error]
}

// Merge merges sorted runs of distinct keys into one sorted sequence. It merges the shortest
// runs first, so that long ones are read once.
func Merge[R any](ctx context.Context, t *rows.Table[R], runs []Run[R]) iter.Seq2[R, error] {
	return func(yield func(R, error) bool) {
		var files Files
		defer files.Close()
		for len(runs) > maxFanIn {
			slices.SortStableFunc(runs, func(a, b Run[R]) int { return cmp.Compare(a.Rows, b.Rows) })
			n := min(maxFanIn, len(runs)-maxFanIn+1)
			f, merged, err := spill(ctx, t, runs[:n])
			if f != nil {
				files = append(files, f)
			}
			if err != nil {
				var none R
				yield(none, fmt.Errorf("merge in %s: %w", os.TempDir(), err))
				return
			}
			runs = append(runs[n:], merged)
		}
		mergeOnce(t, runs, yield)
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

// Sort sorts rows of distinct keys into runs. All runs but the last lie in temporary files.
func Sort[R any](ctx context.Context, t *rows.Table[R], in iter.Seq2[R, error], files *Files) ([]Run[R], error) {
	var (
		runs  []Run[R]
		chunk []R
		size  int64
	)
	sorted := func() Run[R] {
		slices.SortFunc(chunk, func(a, b R) int { return cmp.Compare(t.Key(&a), t.Key(&b)) })
		all := chunk
		return Run[R]{int64(len(all)), func(yield func(R, error) bool) {
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
			f, spilled, err := spill(ctx, t, []Run[R]{sorted()})
			if f != nil {
				*files = append(*files, f)
			}
			if err != nil {
				return nil, fmt.Errorf("sort in %s: %w", os.TempDir(), err)
			}
			runs, chunk, size = append(runs, spilled), nil, 0
		}
		chunk = append(chunk, row)
		size += t.MemoryBytes(&row)
	}
	return append(runs, sorted()), nil
}

// spill merges runs into a temporary file.
func spill[R any](ctx context.Context, t *rows.Table[R], runs []Run[R]) (*tempfile.File, Run[R], error) {
	f, err := tempfile.Create("giantstream-merge-*.parquet")
	if err != nil {
		return nil, Run[R]{}, err
	}
	w := t.NewWriter(f)
	mergeOnce(t, runs, func(row R, rerr error) bool {
		if err = rerr; err == nil {
			err = errors.Join(ctx.Err(), w.Write([]R{row}))
		}
		return err == nil
	})
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		return f, Run[R]{}, err
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return f, Run[R]{}, err
	}
	return f, Run[R]{w.Rows(), t.ReadFrom(f, size, rows.ReadOptions{})}, nil
}

// mergeOnce merges runs that are all read at once. It yields an error last.
func mergeOnce[R any](t *rows.Table[R], runs []Run[R], yield func(R, error) bool) {
	h := make(cursors[R], 0, len(runs))
	defer func() {
		for _, c := range h {
			c.stop()
		}
	}()
	for _, r := range runs {
		c := &runCursor[R]{table: t}
		c.next, c.stop = iter.Pull2(r.Seq)
		h = append(h, c)
		if err := c.advance(); err != nil {
			yield(c.row, err)
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
			yield(c.row, err)
			return
		}
		heap.Fix(&h, 0)
	}
}

// runCursor is a run while it is read.
type runCursor[R any] struct {
	table *rows.Table[R]
	row   R
	key   string
	done  bool
	next  func() (R, error, bool)
	stop  func()
}

func (c *runCursor[R]) advance() error {
	row, err, ok := c.next()
	if err != nil {
		return err
	}
	key := ""
	if ok {
		if key = c.table.Key(&row); key <= c.key && c.key != "" {
			return fmt.Errorf("%w: at %q", ErrUnordered, key)
		}
	}
	c.row, c.key, c.done = row, key, !ok
	return nil
}

// cursors is a heap by key. Cursors that are done come last.
type cursors[R any] []*runCursor[R]

func (h cursors[R]) Len() int { return len(h) }
func (h cursors[R]) Less(i, j int) bool {
	if h[i].done || h[j].done {
		return !h[i].done
	}
	return h[i].key < h[j].key
}
func (h cursors[R]) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *cursors[R]) Push(x any)   { *h = append(*h, x.(*runCursor[R])) }
func (h *cursors[R]) Pop() any {
	last := len(*h) - 1
	c := (*h)[last]
	*h = (*h)[:last]
	return c
}
