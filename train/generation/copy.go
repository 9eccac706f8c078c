package generation

import (
	"context"
	"fmt"
	"io"
	"iter"
	"strings"

	"giantstream/internal/ambient"
	"giantstream/internal/parallel"
	"giantstream/sink"
	"giantstream/sink/embedding"
)

// copyTo copies a complete generation to another store: its objects but for the embeddings, each verified, and then
// d as its document.
func (d *Doc) copyTo(ctx context.Context, from, into sink.Store) error {
	known := map[string]sink.Ref{}
	for ref := range d.Refs {
		known[ref.Key] = ref
	}
	prefix := Prefix(d.Generation)
	for info, err := range from.List(ctx, prefix, "") {
		if err != nil {
			return err
		}
		if info.Key == docKey(d.Generation) || strings.HasPrefix(info.Key, prefix+"embeddings/") {
			continue
		}
		ref, ok := known[info.Key]
		if !ok && len(d.Files) > 0 {
			continue // left by the build
		}
		if err := copyObject(ctx, from, into, info.Key, ref, ok); err != nil {
			return fmt.Errorf("copy %s of generation %d: %w", info.Key, d.Generation, err)
		}
	}
	return d.Save(ctx, into)
}

// CopyTo copies a complete generation to a store with other shards, where the first manifest of each shard has all
// rows of the generation's cut. The embeddings are dealt out to these shards.
func (d *Doc) CopyTo(ctx context.Context, from, into sink.Store, shards int, shardOf func(id string) int,
	p ambient.Progress) error {
	var in []iter.Seq2[embedding.Record, error]
	for _, part := range d.Embeddings {
		in = append(in, embedding.ReadParquet(ctx, from, part.Ref()))
	}
	parts := make([]sink.Part, shards)
	err := parallel.Deal(ctx, parallel.Merge(in, func(e *embedding.Record) string { return e.NodeID }), shards,
		func(e *embedding.Record) int { return shardOf(e.NodeID) },
		func(ctx context.Context, q int, in iter.Seq2[embedding.Record, error]) error {
			key := fmt.Sprintf("%sembeddings/part-%05d.parquet", Prefix(d.Generation), q)
			moved := func(yield func(embedding.Record, error) bool) {
				for e, err := range in {
					p.Add(1)
					if e.Shard, e.Seq = q, 1; !yield(e, err) || err != nil {
						return
					}
				}
			}
			info, err := embedding.WriteParquet(ctx, into, key, d.Settings.Stored.Type, moved)
			parts[q] = sink.Part{Key: key, Shard: q, Rows: info.Rows, Bytes: info.Bytes, Checksum: info.Checksum}
			return err
		})
	if err != nil {
		return fmt.Errorf("embeddings of generation %d: %w", d.Generation, err)
	}
	doc := *d
	doc.Cut, doc.Embeddings = map[int]int64{}, nil
	for q, part := range parts {
		doc.Cut[q] = 1
		if part.Rows > 0 {
			doc.Embeddings = append(doc.Embeddings, part)
			continue
		}
		if err := into.Delete(ctx, part.Key); err != nil {
			return err
		}
	}
	return doc.copyTo(ctx, from, into)
}

func copyObject(ctx context.Context, from, into sink.Store, key string, ref sink.Ref, verified bool) error {
	if verified {
		return sink.CopyObject(ctx, from, ref, into, key)
	}
	object, err := from.Open(ctx, key)
	if err != nil {
		return err
	}
	defer object.Close()
	return into.Put(ctx, key, io.NewSectionReader(object, 0, object.Size()), object.Size())
}

// CopyParts copies the generation's files whose names are wanted to below a prefix, each verified, and returns the
// copies by name. A generation of a release that named no files is damaged for this purpose.
func (d *Doc) CopyParts(ctx context.Context, store sink.Store, prefix string, wanted func(name string) bool) (
	map[string]sink.Ref, error) {
	if len(d.Files) == 0 {
		return nil, fmt.Errorf("generation %d: %w: its document names no files", d.Generation, ErrDamaged)
	}
	copies := map[string]sink.Ref{}
	for name := range d.Files {
		if !wanted(name) {
			continue
		}
		ref := d.ref(name)
		if err := sink.CopyObject(ctx, store, ref, store, prefix+name); err != nil {
			return nil, damaged(d.Generation, err)
		}
		ref.Key = prefix + name
		copies[name] = ref
	}
	return copies, nil
}
