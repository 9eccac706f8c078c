package embeddings

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"giantstream/sink/embedding"
	"giantstream/train"
	"giantstream/train/encoders/bert/compute"
	"giantstream/train/generation"
	"giantstream/train/generation/build/graph"
	"giantstream/train/generation/build/sections"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/training"
	"giantstream/train/generation/build/vocabulary"
	"giantstream/train/generation/build/work"
)

// encodeStats is what encode, or fill, leaves for the generation's document.
type encodeStats struct {
	NoText         int `json:"no_text"`
	FromNeighbours int `json:"from_neighbours,omitempty"`
	// GPUMath is how a GPU multiplied, "" for float32 and a CPU.
	GPUMath compute.Math `json:"gpu_math,omitempty"`
}

// Encode embeds a partition's texts. It writes the embeddings, unless nodes without text are to have those of their
// neighbours, which may be in any partition. It holds the partition's embeddings in memory.
//
//	sampled  by block: the embeddings of the nodes that are in the sample, float32
//	vectors  where fill follows, by block: the embeddings, float32
//	status   where fill follows: a byte for each node, 1 for one without text
func Encode(ctx context.Context, t *work.Task) error {
	e, release, err := training.SharedEncoder(ctx, t.Build)
	if err != nil {
		return err
	}
	defer release()
	p, err := graph.ReadPartition(ctx, t, false)
	if err != nil {
		return err
	}
	v := embedded{dim: e.Dim(), vectors: make([]float32, len(p.Nodes)*e.Dim()),
		status: make([]embedding.Status, len(p.Nodes))}
	if err := embedNodes(ctx, t, e, p, v); err != nil {
		return err
	}
	if err := putSampledVectors(ctx, t, v); err != nil {
		return err
	}
	s := encodeStats{GPUMath: training.GPUMath(t)}
	for i, text := range p.Texts {
		var r embedding.Record
		r.SetVector(text, v.row(i))
		if v.status[i] = r.Status; r.Status == embedding.NoText {
			s.NoText++
		}
	}
	t.Stats = s
	if !t.Plan.Fill {
		return writeEmbeddings(ctx, t, p, v)
	}
	vectors, status := t.NewSections(graph.Blocks(len(p.Nodes))), t.NewSections(1)
	defer vectors.Close() //nolint:errcheck // temporary files
	defer status.Close()  //nolint:errcheck
	var b []byte
	for i := range p.Nodes {
		if err := vectors.Add(i/graph.Block, sections.AppendFloats(b[:0], v.row(i))); err != nil {
			return err
		}
		without := byte(0)
		if v.status[i] == embedding.NoText {
			without = 1
		}
		if err := status.Add(0, []byte{without}); err != nil {
			return err
		}
	}
	return errors.Join(t.PutSections(ctx, "vectors", vectors), t.PutSections(ctx, "status", status))
}

// embedNodes encodes the nodes of the partition.
func embedNodes(ctx context.Context, t *work.Task, e train.Encoder, p *graph.Partition, v embedded) error {
	ids := make([]string, len(p.Nodes))
	for i := range p.Nodes {
		ids[i] = string(p.Nodes[i].ID)
	}
	encode := func(lo, hi int, features train.TextFeatures) error {
		return errors.Join(ctx.Err(), train.EncodeItems(e, ids[lo:hi], p.Texts[lo:hi], features,
			v.vectors[lo*v.dim:hi*v.dim]))
	}
	if _, takesFeatures := e.(train.FeatureEncoder); !takesFeatures {
		for lo := 0; lo < len(ids); lo += graph.Block {
			if err := encode(lo, min(lo+graph.Block, len(ids)), nil); err != nil {
				return err
			}
		}
		return nil
	}
	model, err := vocabulary.LoadVectorizer(ctx, t.Build)
	if err != nil {
		return err
	}
	return vocabulary.EachCounts(ctx, t.Build, model, t.Partition, func(lo int, c *vocabulary.TextCounts) error {
		return encode(lo, lo+len(c.Records), c.Features)
	})
}

// putSampledVectors stores the embeddings of the nodes that evaluate asks about.
func putSampledVectors(ctx context.Context, t *work.Task, v embedded) error {
	sampled, err := training.SampledNodes(ctx, t.Build, t.Partition)
	if err != nil {
		return err
	}
	out := t.NewSections(graph.Blocks(len(sampled)))
	defer out.Close() //nolint:errcheck // a temporary file
	var b []byte
	for k, i := range sampled {
		b = sections.AppendFloats(b[:0], v.row(int(i)))
		if err := out.Add(k/graph.Block, b); err != nil {
			return err
		}
	}
	return t.PutSections(ctx, "sampled", out)
}

// embedded are the embeddings of a partition.
type embedded struct {
	dim     int
	vectors []float32
	status  []embedding.Status
}

func (e embedded) row(i int) []float32 { return e.vectors[i*e.dim : (i+1)*e.dim : (i+1)*e.dim] }

// writeEmbeddings writes the embeddings of a partition, one part for each shard that has nodes in it, in ascending
// order of ids.
func writeEmbeddings(ctx context.Context, t *work.Task, p *graph.Partition, v embedded) error {
	trained, err := work.StatsOf[training.Stats](ctx, t.Build, stages.Encoder, 0)
	if err != nil {
		return err
	}
	space := trained.Space
	if space == t.Plan.Generation {
		space = 0
	}
	stored := t.Doc.Settings.Stored
	for shard := range t.Plan.Shards {
		var of []embedding.Record
		for _, i := range p.ByID {
			n := &p.Nodes[i]
			if n.Shard != shard {
				continue
			}
			r := embedding.Record{NodeID: string(n.ID), Generation: t.Plan.Generation, Space: space, EventTime: n.Time,
				Shard: shard, Seq: n.Seq, Status: v.status[i]}
			if r.Status != embedding.NoText {
				r.Vector = v.row(i)
			}
			of = append(of, r)
		}
		if len(of) == 0 {
			continue
		}
		name := fmt.Sprintf("part-%05d-%05d.parquet", shard, t.Partition)
		key := t.ArtifactKey("embeddings/" + name)
		info, err := embedding.WriteParquet(ctx, t.Store, key, stored.Type, narrowed(of, stored))
		if err != nil {
			return err
		}
		t.Outputs[name] = work.Output{Key: key, Bytes: info.Bytes, Checksum: info.Checksum, Rows: info.Rows,
			Shard: shard}
	}
	return nil
}

func narrowed(records []embedding.Record, f embedding.Format) iter.Seq2[embedding.Record, error] {
	return func(yield func(embedding.Record, error) bool) {
		for _, r := range records {
			if !yield(f.Narrow(r), nil) {
				return
			}
		}
	}
}

// DescribeEmbeddings notes the embeddings.
func DescribeEmbeddings(ctx context.Context, b *work.Build, doc *generation.Doc) (err error) {
	for p := range b.Plan.Partitions {
		e, err := work.StatsOf[encodeStats](ctx, b, b.Plan.EmbeddingStage(), p)
		if err != nil {
			return err
		}
		doc.Graph.NoText += e.NoText
		doc.Graph.FromNeighbours += e.FromNeighbours
		training.AddMath(doc, e.GPUMath)
	}
	doc.Embeddings, err = b.PartsOf(ctx, b.Plan.EmbeddingStage())
	return err
}
