package vectordbtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"giantstream/sink/vectordb"
)

// Memory is a database in memory: the plainest that keeps what vectordb.Index asks for. Open gives processes.
type Memory struct {
	mu       sync.Mutex
	session  int
	catalog  vectordb.Catalog
	progress map[int]vectordb.Progress
	tables   map[int64]map[string]memoryRow // by serial; deletions stay
	served   int64
}

// memoryRow is a row, and the newest record of its attributes.
type memoryRow struct {
	vectordb.Record
	attributes vectordb.Record
}

// NewMemory returns an empty database.
func NewMemory() *Memory {
	return &Memory{progress: map[int]vectordb.Progress{}, tables: map[int64]map[string]memoryRow{}}
}

// Process returns an index of a new process.
func (m *Memory) Process() vectordb.Index { return &memoryIndex{Memory: m} }

// Rows is what readers see.
func (m *Memory) Rows() map[string]Seen {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.served == 0 {
		return nil
	}
	out := map[string]Seen{}
	for id, r := range m.tables[m.served] {
		if !r.Deleted {
			out[id] = Seen{Literal(r.Vector), r.Generation, r.Seq, Show(r.attributes.Values)}
		}
	}
	return out
}

// Tables counts them.
func (m *Memory) Tables() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.tables)
}

type memoryIndex struct {
	*Memory
	session int
}

// owned calls do unless another process has opened the database.
func (x *memoryIndex) owned(do func()) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.session != x.Memory.session {
		return vectordb.ErrTakenOver
	}
	do()
	return nil
}

func (x *memoryIndex) Open(context.Context) (vectordb.Saved, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.Memory.session++
	x.session = x.Memory.session
	return vectordb.Saved{Catalog: copied(x.catalog), Progress: maps.Clone(x.progress)}, nil
}

func copied(c vectordb.Catalog) vectordb.Catalog {
	c.Tables = slices.Clone(c.Tables)
	return c
}

// Attributes implements vectordb.Attributed.
func (x *memoryIndex) Attributes() []vectordb.Attribute { return Attributes }

func (x *memoryIndex) Check(string) error { return nil }

func (x *memoryIndex) Save(_ context.Context, c vectordb.Catalog) error {
	return x.owned(func() { x.catalog = copied(c) })
}

func (x *memoryIndex) Create(_ context.Context, t vectordb.Table) error {
	return x.owned(func() {
		if x.tables[t.Serial] == nil {
			x.tables[t.Serial] = map[string]memoryRow{}
		}
	})
}

func (x *memoryIndex) Apply(_ context.Context, b vectordb.Batch) error {
	var missing error
	err := x.owned(func() {
		for _, c := range b.Changes {
			rows := x.tables[c.Table.Serial]
			if rows == nil {
				missing = fmt.Errorf("%w: there is no table %d", vectordb.ErrRefused, c.Table.Serial)
				return
			}
			for _, r := range append(slices.Clone(c.Upserts), c.Deletes...) {
				old, ok := rows[r.NodeID]
				switch {
				case ok && old.Offset >= r.Offset:
				case old.Deleted || r.Deleted:
					rows[r.NodeID] = memoryRow{Record: r}
				default:
					rows[r.NodeID] = memoryRow{Record: r, attributes: old.attributes}
				}
			}
			for _, r := range c.Attributes {
				row, ok := rows[r.NodeID]
				if ok && !row.Deleted && row.Offset < r.Offset &&
					(row.attributes.Values == nil || row.attributes.Offset < r.Offset) {
					row.attributes = r
					rows[r.NodeID] = row
				}
			}
		}
		if p := x.progress[b.Partition]; p.Epoch < b.Progress.Epoch ||
			p.Epoch == b.Progress.Epoch && p.Next <= b.Progress.Next {
			x.progress[b.Partition] = b.Progress
		}
	})
	return errors.Join(err, missing)
}

func (x *memoryIndex) Newer(_ context.Context, old, by vectordb.Table) (newer bool, err error) {
	newer = true
	err = x.owned(func() {
		for id, r := range x.tables[old.Serial] {
			if !r.Deleted && x.tables[by.Serial][id].Offset <= r.Offset {
				newer = false
			}
		}
	})
	return newer, err
}

func (x *memoryIndex) Finish(context.Context, vectordb.Table) error { return x.owned(func() {}) }

func (x *memoryIndex) Serve(_ context.Context, t vectordb.Table, c vectordb.Catalog) error {
	return x.owned(func() { x.served, x.catalog = t.Serial, copied(c) })
}

func (x *memoryIndex) Drop(_ context.Context, t vectordb.Table) error {
	return x.owned(func() { delete(x.tables, t.Serial) })
}

func (x *memoryIndex) Remaining(_ context.Context, nodes []string) (map[string]int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	rows := map[string]map[string]memoryRow{}
	for _, t := range x.catalog.Tables {
		rows[t.Name("memory")] = x.tables[t.Serial]
	}
	return x.catalog.Remaining("memory", nodes, func(table string, nodes []string) (n int, err error) {
		for _, id := range nodes {
			if r, ok := rows[table][id]; ok && !r.Deleted {
				n++
			}
		}
		return n, nil
	})
}

func (x *memoryIndex) Close() error { return nil }
