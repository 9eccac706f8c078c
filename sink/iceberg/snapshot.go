package iceberg

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"giantstream/sink"
	"giantstream/sink/vectordb"
)

// Manifests of one content that are shorter than largeManifest, in bytes, are merged once there are manyManifests of
// them. Longer ones stay as they are.
const (
	manyManifests = 64
	largeManifest = 8 << 20
)

// files returns the live files of a snapshot; none for 0.
func (x *Index) files(ctx context.Context, snapshot int64) (data, deletes []iceberg.DataFile, err error) {
	manifests, err := x.manifests(ctx, snapshot)
	if err != nil {
		return nil, nil, err
	}
	for _, m := range manifests {
		entries, err := x.entries(ctx, m)
		if err != nil {
			return nil, nil, err
		}
		for _, e := range entries {
			switch f := e.DataFile(); {
			case f.ContentType() == iceberg.EntryContentData:
				data = append(data, f)
			case f.ContentType() == iceberg.EntryContentPosDeletes && f.FileFormat() == iceberg.ParquetFile:
				deletes = append(deletes, f)
			default:
				return nil, nil, fmt.Errorf("%w: %s was written by another program, with %s in %s: "+
					"giantstream-iceberg reads position deletes in Parquet. Run 'giantstream-iceberg refill'",
					vectordb.ErrRefused, f.FilePath(), f.ContentType(), f.FileFormat())
			}
		}
	}
	return data, deletes, nil
}

// manifests returns those of a snapshot; none for 0.
func (x *Index) manifests(ctx context.Context, snapshot int64) ([]iceberg.ManifestFile, error) {
	if snapshot == 0 {
		return nil, nil
	}
	s := x.meta.SnapshotByID(snapshot)
	if s == nil {
		return nil, fmt.Errorf("%w: the table has lost the snapshot %d", vectordb.ErrRefused, snapshot)
	}
	return readMetadata(ctx, x, s.ManifestList, iceberg.ReadManifestList)
}

// entries returns the live entries of a manifest.
func (x *Index) entries(ctx context.Context, m iceberg.ManifestFile) ([]iceberg.ManifestEntry, error) {
	return readMetadata(ctx, x, m.FilePath(), func(r io.Reader) ([]iceberg.ManifestEntry, error) {
		return iceberg.ReadManifest(m, r, true)
	})
}

// readMetadata decodes a file of the table.
func readMetadata[T any](ctx context.Context, x *Index, path string, decode func(io.Reader) ([]T, error)) ([]T, error) {
	key, err := x.key(path)
	if err != nil {
		return nil, err
	}
	data, err := sink.ReadAll(ctx, x.store, key)
	if err != nil {
		return nil, err
	}
	found, err := decode(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return found, nil
}

// snapshot is one that an attempt adds.
type snapshot struct {
	id, parent, sequence int64 // parent is 0 for none
	manifests            []iceberg.ManifestFile
	added, deleted       []iceberg.DataFile
}

// write writes the manifests of a snapshot and its list.
func (x *Index) write(ctx context.Context, a *attempt, s *snapshot) error {
	for _, add := range []struct {
		files   []iceberg.DataFile
		content iceberg.ManifestContent
	}{{s.added, iceberg.ManifestContentData}, {s.deleted, iceberg.ManifestContentDeletes}} {
		if len(add.files) == 0 {
			continue
		}
		m, err := x.writeManifest(ctx, a, s, add.content, func(w *iceberg.ManifestWriter) error {
			for _, f := range add.files {
				if err := w.Add(iceberg.NewManifestEntry(iceberg.EntryStatusADDED, &s.id, nil, nil, f)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		s.manifests = append(s.manifests, m)
	}
	for _, content := range []iceberg.ManifestContent{iceberg.ManifestContentData, iceberg.ManifestContentDeletes} {
		if err := x.merge(ctx, a, s, content); err != nil {
			return err
		}
	}
	var b bytes.Buffer
	var parent *int64
	if s.parent != 0 {
		parent = &s.parent
	}
	if err := iceberg.WriteManifestList(2, &b, s.id, parent, &s.sequence, 0, s.manifests); err != nil {
		return err
	}
	return x.put(ctx, a, s.list(a), b.Bytes())
}

func (s *snapshot) list(a *attempt) string {
	return fmt.Sprintf("metadata/snap-%d-%s.avro", s.id, a.name)
}

// merge makes one of the many small manifests of a content.
func (x *Index) merge(ctx context.Context, a *attempt, s *snapshot, content iceberg.ManifestContent) error {
	var keep, small []iceberg.ManifestFile
	for _, m := range s.manifests {
		// The manifest of this very snapshot stays apart: its entries are added, not existing.
		if m.ManifestContent() == content && m.Length() < largeManifest && m.SnapshotID() != s.id {
			small = append(small, m)
		} else {
			keep = append(keep, m)
		}
	}
	if len(small) < manyManifests {
		return nil
	}
	live := false
	merged, err := x.writeManifest(ctx, a, s, content, func(w *iceberg.ManifestWriter) error {
		for _, m := range small {
			entries, err := x.entries(ctx, m)
			if err != nil {
				return err
			}
			for _, e := range entries {
				live = true
				if err := w.Existing(e); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if s.manifests = keep; live {
		s.manifests = append(s.manifests, merged)
	}
	return nil
}

func (x *Index) writeManifest(ctx context.Context, a *attempt, s *snapshot, content iceberg.ManifestContent,
	fill func(*iceberg.ManifestWriter) error) (iceberg.ManifestFile, error) {
	var b bytes.Buffer
	w, err := iceberg.NewManifestWriter(2, &b, *iceberg.UnpartitionedSpec, x.meta.CurrentSchema(), s.id,
		iceberg.WithManifestWriterContent(content))
	if err != nil {
		return nil, err
	}
	if err := fill(w); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	a.manifests++
	key := fmt.Sprintf("metadata/%s-m%d.avro", a.name, a.manifests)
	m, err := w.ToManifestFile(x.path(key), int64(b.Len()), iceberg.WithManifestFileContent(content))
	if err != nil {
		return nil, err
	}
	return m, x.put(ctx, a, key, b.Bytes())
}

// put writes a file of an attempt.
func (x *Index) put(ctx context.Context, a *attempt, key string, data []byte) error {
	a.keys = append(a.keys, key)
	return sink.PutBytes(ctx, x.store, key, data)
}

// counted are the keys of a summary that engines plan with: for each content, those of its files and rows.
var counted = []struct{ addedFiles, addedRows, files, rows string }{
	{"added-data-files", "added-records", "total-data-files", "total-records"},
	{"added-delete-files", "added-position-deletes", "total-delete-files", "total-position-deletes"},
}

// summary returns what the snapshot's summary says of its files, and of those of its parent.
func (s *snapshot) summary(parent *table.Snapshot) *table.Summary {
	out := &table.Summary{Operation: table.OpReplace, Properties: iceberg.Properties{}}
	total := func(key string, added int64) {
		if parent != nil && parent.Summary != nil {
			before, _ := strconv.ParseInt(parent.Summary.Properties[key], 10, 64)
			added += before
		}
		out.Properties[key] = strconv.FormatInt(added, 10)
	}
	size := int64(0)
	for i, files := range [][]iceberg.DataFile{s.added, s.deleted} {
		rows := int64(0)
		for _, f := range files {
			rows += f.Count()
			size += f.FileSizeBytes()
		}
		if keys := counted[i]; len(files) > 0 {
			out.Properties[keys.addedFiles] = strconv.Itoa(len(files))
			out.Properties[keys.addedRows] = strconv.FormatInt(rows, 10)
		}
		total(counted[i].files, int64(len(files)))
		total(counted[i].rows, rows)
	}
	total("total-files-size", size)
	switch {
	case len(s.deleted) > 0:
		out.Operation = table.OpOverwrite
	case len(s.added) > 0:
		out.Operation = table.OpAppend
	}
	return out
}
