package shard

import (
	"context"
	"fmt"
	"testing"

	"giantstream/sink/memstore"
	"giantstream/stream/mutation"
)

// BenchmarkApply measures how fast a shard on local disk takes new edges, its own and mirrored
// ones, in batches of 2,000.
func BenchmarkApply(b *testing.B) {
	s, err := Open(context.Background(), Options{
		Shards: 1, Dir: b.TempDir(), Store: &memstore.Store{}, Window: wide,
		Topics: Topics{Nodes: nodesTopic, Edges: edgesTopic, Mirror: mirrorTopic}, Mirror: discard{},
	})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // test
	var batch mutation.Batch
	offset := int64(0)
	for b.Loop() {
		offset++
		m := mutation.Mutation{Op: mutation.PutEdge,
			Version: mutation.Version{EventTime: offset, Rank: 1, Offset: offset},
			ID:      fmt.Sprintf("node-%06d", offset*7919%50_000), Other: fmt.Sprintf("node-%06d", offset*104_729%50_000)}
		if offset%2 == 0 {
			m.Op = mutation.MirrorPut
		}
		if batch.Mutations = append(batch.Mutations, m); len(batch.Mutations) == 2000 {
			batch.Next = map[string]int64{edgesTopic: offset, mirrorTopic: offset}
			if err := s.Apply(context.Background(), batch); err != nil {
				b.Fatal(err)
			}
			batch.Mutations = nil
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "mutations/s")
}

type discard struct{}

func (discard) Publish(context.Context, []mutation.Mutation) error { return nil }
func (discard) Flush(context.Context) error                        { return nil }
