package iceberg

import "context"

// scanned is how many places are set at a time.
const scanned = 10_000

// index makes Places right for a table as it is committed.
func (x *Index) index(ctx context.Context, serial int64) error {
	head := x.saved.Heads[serial]
	if at, ok := x.indexed[serial]; ok && at == head {
		return nil
	}
	delete(x.indexed, serial)
	if err := x.opts.Places.Drop(serial); err != nil {
		return err
	}
	data, deletes, err := x.files(ctx, head)
	if err != nil {
		return err
	}
	gone := map[uint32]bits{}
	for _, f := range deletes {
		for d, err := range x.readDeletions(ctx, f.FilePath()) {
			if err != nil {
				return err
			}
			n := x.number(d.Path)
			gone[n] = gone[n].add(d.Pos)
		}
	}
	for _, f := range data {
		if err := x.indexFile(ctx, serial, f.FilePath(), gone); err != nil {
			return err
		}
	}
	x.indexed[serial] = head
	return nil
}

func (x *Index) indexFile(ctx context.Context, serial int64, path string, gone map[uint32]bits) error {
	n := x.number(path)
	set := map[string]Place{}
	at := int64(-1)
	for r, err := range x.readVersions(ctx, path) {
		if err != nil {
			return err
		}
		if at++; gone[n].has(at) {
			continue
		}
		set[r.node] = Place{File: n, Row: uint32(at), Version: r.version}
		if len(set) < scanned {
			continue
		}
		if err := x.opts.Places.Change(serial, nil, set); err != nil {
			return err
		}
		clear(set)
	}
	return x.opts.Places.Change(serial, nil, set)
}

// bits is a set of rows of a file.
type bits []uint64

// maxRow is more than a file of Parquet may have rows here; a damaged file of deletes must not take all memory.
const maxRow = 1 << 32

// add returns the set with one more row.
func (b bits) add(row int64) bits {
	if row < 0 || row >= maxRow {
		return b
	}
	for int64(len(b)) <= row/64 {
		b = append(b, 0)
	}
	b[row/64] |= 1 << (row % 64)
	return b
}

func (b bits) has(row int64) bool { return row/64 < int64(len(b)) && b[row/64]&(1<<(row%64)) != 0 }
