package iceberg

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"

	"giantstream/sink/parquetio"
	"giantstream/sink/rows"
)

// KeptFiles is what Remaining calls the data files in which rows stay that are deleted or replaced, as long as a
// snapshot has the file.
const KeptFiles = "files of rows that readers do not see"

// Remaining implements vectordb.Index. It counts the nodes of each branch, and those that are only in files yet. In a
// table of rows, a link to a node counts for it.
func (x *Index) Remaining(ctx context.Context, nodes []string) (map[string]int, error) {
	// The state of x is that of a process that writes.
	l := &remains{Index: newIndex(x.opts, x.kind), wanted: map[string]bool{}, hits: map[string][]hit{}}
	for _, id := range nodes {
		l.wanted[id] = true
	}
	if ok, err := l.open(ctx); !ok || err != nil {
		return nil, err
	}
	if err := l.search(ctx); err != nil {
		return nil, err
	}
	left, seen := map[string]int{}, map[string]bool{}
	for name, ref := range refs(l.meta) {
		if name == progressTag {
			continue
		}
		live, err := l.live(ctx, ref.SnapshotID)
		if err != nil {
			return nil, err
		}
		if len(live) > 0 {
			left["branch "+name] = len(live)
			maps.Copy(seen, live)
		}
	}
	kept := map[string]bool{}
	for _, hits := range l.hits {
		for _, h := range hits {
			if !seen[h.node] {
				kept[h.node] = true
			}
		}
	}
	if len(kept) > 0 {
		left[KeptFiles] = len(kept)
	}
	return left, nil
}

// remains is a search for what is left of nodes.
type remains struct {
	*Index
	wanted map[string]bool
	hits   map[string][]hit // by data file
}

// hit is a row of a data file that has a node.
type hit struct {
	row  int64
	node string
}

// open reads the table's metadata, and is false if there is no table.
func (l *remains) open(ctx context.Context) (ok bool, err error) {
	if l.catalog, err = l.opts.Catalog(ctx); err != nil {
		return false, fmt.Errorf("open the catalog: %w", classify(err))
	}
	t, err := l.catalog.LoadTable(ctx, l.opts.Table)
	if errors.Is(err, catalog.ErrNoSuchTable) || errors.Is(err, catalog.ErrNoSuchNamespace) {
		return false, nil
	}
	if err != nil {
		return false, classify(err)
	}
	l.meta, l.location = t.Metadata(), strings.TrimRight(t.Metadata().Location(), "/")
	l.store, err = l.opts.Store(ctx, l.location)
	return err == nil, err
}

// search reads the data files of all snapshots, each once.
func (l *remains) search(ctx context.Context) error {
	seen := map[string]bool{}
	for _, s := range l.meta.Snapshots() {
		manifests, err := l.manifests(ctx, s.SnapshotID)
		if err != nil {
			return err
		}
		for _, m := range manifests {
			if seen[m.FilePath()] || m.ManifestContent() != iceberg.ManifestContentData {
				continue
			}
			seen[m.FilePath()] = true
			entries, err := l.entries(ctx, m)
			if err != nil {
				return err
			}
			for _, e := range entries {
				path := plain(e.DataFile().FilePath())
				if seen[path] {
					continue
				}
				seen[path] = true
				if l.hits[path], err = l.searchFile(ctx, path); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (l *remains) searchFile(ctx context.Context, path string) (hits []hit, err error) {
	columns := []parquetio.Column[[]string]{parquetio.Scalar(rows.ColNodeID, parquetio.String(),
		func(r *[]string, v string) { *r = append(*r, v) })}
	if l.kind == facts {
		columns = append(columns, parquetio.List(rows.ColLabels, parquetio.String(),
			func(r *[]string, v []string) { *r = append(*r, v...) }))
	}
	at := int64(-1)
	for ids, err := range readFile(ctx, l.Index, path, l.kind.format, columns) {
		if err != nil {
			return nil, err
		}
		at++
		for _, id := range ids {
			if l.wanted[id] {
				hits = append(hits, hit{at, strings.Clone(id)})
			}
		}
	}
	return hits, nil
}

// live returns the nodes that a snapshot has rows of.
func (l *remains) live(ctx context.Context, snapshot int64) (map[string]bool, error) {
	data, deletes, err := l.files(ctx, snapshot)
	if err != nil {
		return nil, err
	}
	gone := map[string]bits{}
	for _, f := range deletes {
		for d, err := range l.readDeletions(ctx, f.FilePath()) {
			if err != nil {
				return nil, err
			}
			gone[plain(d.Path)] = gone[plain(d.Path)].add(d.Pos)
		}
	}
	live := map[string]bool{}
	for _, f := range data {
		path := plain(f.FilePath())
		for _, h := range l.hits[path] {
			if !gone[path].has(h.row) {
				live[h.node] = true
			}
		}
	}
	return live, nil
}

// Remaining is Index.Remaining for a table of rows.
func (r *Rows) Remaining(ctx context.Context, nodes []string) (map[string]int, error) {
	return r.x.Remaining(ctx, nodes)
}
