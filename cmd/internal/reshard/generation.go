package reshard

import (
	"context"
	"fmt"
	"iter"

	"giantstream/sink/embedding"
	"giantstream/train/generation"
)

// writeGeneration copies the generation that is served. Its embeddings are dealt out to the new shards.
func (r *run) writeGeneration(ctx context.Context) error {
	r.Progress.Stage("copy the generation", 0)
	var in []iter.Seq2[embedding.Record, error]
	for _, part := range r.doc.Embeddings {
		in = append(in, embedding.ReadParquet(ctx, r.From, part.Ref()))
	}
	parts := make([]generation.Part, r.shards)
	err := split(ctx, merge(in, func(e *embedding.Record) string { return e.NodeID }), r.shards,
		func(e *embedding.Record) int { return r.of(e.NodeID) },
		func(ctx context.Context, q int, in iter.Seq2[embedding.Record, error]) error {
			key := fmt.Sprintf("%sembeddings/part-%05d.parquet", generation.Prefix(r.doc.Generation), q)
			moved := func(yield func(embedding.Record, error) bool) {
				for e, err := range in {
					r.Progress.Add(1)
					// The first manifest has all rows of the generation's cut.
					if e.Shard, e.Seq = q, 1; !yield(e, err) || err != nil {
						return
					}
				}
			}
			info, err := embedding.WriteParquet(ctx, r.Into, key, r.doc.Settings.Stored.Type, moved)
			parts[q] = generation.Part{Key: key, Shard: q, Rows: info.Rows, Bytes: info.Bytes, CRC32C: info.CRC32C}
			return err
		})
	if err != nil {
		return fmt.Errorf("embeddings of generation %d: %w", r.doc.Generation, err)
	}
	doc := *r.doc
	doc.Cut, doc.Embeddings = map[int]int64{}, nil
	for q, part := range parts {
		doc.Cut[q] = 1
		if part.Rows > 0 {
			doc.Embeddings = append(doc.Embeddings, part)
			continue
		}
		if err := r.Into.Delete(ctx, part.Key); err != nil {
			return err
		}
	}
	return doc.CopyTo(ctx, r.From, r.Into)
}
