package iceberg

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/table"

	"giantstream/sink"
	"giantstream/sink/vectordb"
)

// Manifests of one content are merged when there are so many; large ones stay as they are.
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
	data, err := x.read(ctx, s.ManifestList)
	if err != nil {
		return nil, err
	}
	list, err := iceberg.ReadManifestList(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", s.ManifestList, err)
	}
	return list, nil
}

// entries returns the live entries of a manifest.
func (x *Index) entries(ctx context.Context, m iceberg.ManifestFile) ([]iceberg.ManifestEntry, error) {
	data, err := x.read(ctx, m.FilePath())
	if err != nil {
		return nil, err
	}
	entries, err := iceberg.ReadManifest(m, bytes.NewReader(data), true)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", m.FilePath(), err)
	}
	return entries, nil
}

func (x *Index) read(ctx context.Context, path string) ([]byte, error) {
	key, err := x.key(path)
	if err != nil {
		return nil, err
	}
	return sink.ReadAll(ctx, x.store, key)
}

// snapshot is one that an attempt adds.
type snapshot struct {
	id, parent, sequence int64 // parent is 0 for none
	manifests            []iceberg.ManifestFile
	added, deleted       iceberg.DataFile // nil for none
}

// write writes the manifests of a snapshot and its list.
func (x *Index) write(ctx context.Context, a *attempt, s *snapshot) error {
	for _, f := range []struct {
		file    iceberg.DataFile
		content iceberg.ManifestContent
	}{{s.added, iceberg.ManifestContentData}, {s.deleted, iceberg.ManifestContentDeletes}} {
		if f.file == nil {
			continue
		}
		entry := iceberg.NewManifestEntry(iceberg.EntryStatusADDED, &s.id, nil, nil, f.file)
		m, err := x.writeManifest(ctx, a, s, f.content, func(w *iceberg.ManifestWriter) error { return w.Add(entry) })
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

// totals of a summary that engines plan with.
const (
	totalRows, totalDeletions   = "total-records", "total-position-deletes"
	totalData, totalDeleteFiles = "total-data-files", "total-delete-files"
	totalBytes                  = "total-files-size"
)

// summary returns what the snapshot's summary says of its files, and of those of its parent.
func (s *snapshot) summary(parent *table.Snapshot) *table.Summary {
	totals := map[string]int64{}
	for _, key := range []string{totalRows, totalDeletions, totalData, totalDeleteFiles, totalBytes} {
		totals[key] = 0
		if parent != nil && parent.Summary != nil {
			totals[key], _ = strconv.ParseInt(parent.Summary.Properties[key], 10, 64)
		}
	}
	out := table.Summary{Operation: table.OpReplace, Properties: iceberg.Properties{}}
	if f := s.added; f != nil {
		out.Operation = table.OpAppend
		out.Properties["added-data-files"] = "1"
		out.Properties["added-records"] = strconv.FormatInt(f.Count(), 10)
		totals[totalData]++
		totals[totalRows] += f.Count()
		totals[totalBytes] += f.FileSizeBytes()
	}
	if f := s.deleted; f != nil {
		out.Operation = table.OpOverwrite
		out.Properties["added-delete-files"] = "1"
		out.Properties["added-position-deletes"] = strconv.FormatInt(f.Count(), 10)
		totals[totalDeleteFiles]++
		totals[totalDeletions] += f.Count()
		totals[totalBytes] += f.FileSizeBytes()
	}
	for key, n := range totals {
		out.Properties[key] = strconv.FormatInt(n, 10)
	}
	return &out
}
