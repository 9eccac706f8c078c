package graph

import (
	"context"
	"errors"

	"giantstream/train/generation/build/sections"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
	"giantstream/train/numeric"
)

// Block is how many nodes a section of a partition's files has.
const Block = 1024

// Blocks is how many blocks n nodes have.
func Blocks(n int) int { return (n + Block - 1) / Block }

// EachBlock calls visit with each block of an output that has one record for each node of a partition: those of nodes
// lo ≤ i < hi. An error of the decoder is one of the task that wrote it.
func EachBlock(ctx context.Context, b *work.Build, stage, name string, partition int,
	visit func(d *sections.Decoder, lo, hi int) error) error {
	x, err := LoadNumbering(ctx, b)
	if err != nil {
		return err
	}
	from, err := b.OutputsOf(ctx, stage, partition)
	if err != nil {
		return err
	}
	in, err := from.OpenSections(ctx, name)
	if err != nil {
		return err
	}
	defer in.Close()
	n := x.SizeOf(partition)
	var read [][]byte
	for k := range Blocks(n) {
		if len(read) == 0 {
			if read, err = in.ReadStretch(k, Blocks(n)); err != nil {
				return err
			}
		}
		d := sections.Decoder{Rest: read[0]}
		read = read[1:]
		err = visit(&d, k*Block, min(n, (k+1)*Block))
		if d.Err != nil {
			return from.Explain(d.Err)
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

// EachNeighbours calls visit with the neighbours of a partition's nodes in order.
func EachNeighbours(ctx context.Context, b *work.Build, p int, visit func(i int, n Neighbours) error) error {
	return EachBlock(ctx, b, stages.Link, "links", p, func(d *sections.Decoder, lo, hi int) error {
		for i := lo; i < hi; i++ {
			n := ReadNeighbours(d, b.Plan.Weighted)
			if d.Err != nil {
				return d.Err
			}
			if err := visit(i, n); err != nil {
				return err
			}
		}
		return nil
	})
}

// Node is what embeddings and training rows say of a node beside its text. Strings share memory.
type Node struct {
	ID, Class []byte
	Time      int64
	Shard     int
	Seq       int64
}

func readNode(d *sections.Decoder) Node {
	return Node{ID: d.StringBytes(), Class: d.StringBytes(), Time: d.Varint(), Shard: int(d.Varint()), Seq: d.Varint()}
}

// EachNode calls visit with the nodes of a partition in order.
func EachNode(ctx context.Context, b *work.Build, p int, visit func(i int, a Node) error) error {
	return EachBlock(ctx, b, stages.Number, "nodes", p, func(d *sections.Decoder, lo, hi int) error {
		for i := lo; i < hi; i++ {
			a := readNode(d)
			if d.Err != nil {
				return d.Err
			}
			if err := visit(i, a); err != nil {
				return err
			}
		}
		return nil
	})
}

// EachTextBlock calls visit with the texts of a partition, a block after the other.
func EachTextBlock(ctx context.Context, b *work.Build, partition int, visit func(lo int, texts []string) error) error {
	return EachBlock(ctx, b, stages.Number, "texts", partition, func(d *sections.Decoder, lo, hi int) error {
		texts := make([]string, 0, Block)
		for range hi - lo {
			texts = append(texts, string(d.StringBytes()))
		}
		if d.Err != nil {
			return d.Err
		}
		return visit(lo, texts)
	})
}

// SampleBegin is the position at which a sample begins. As positions go by a hash, every run of them is a random
// sample.
func SampleBegin(b *work.Build, x Numbering, seed uint64) int {
	r := numeric.NewRand(seed, 'S')
	return r.IntN(x.Nodes())
}
