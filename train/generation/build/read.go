package build

import (
	"context"
	"errors"

	"giantstream/train/generation/build/sections"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
	"giantstream/train/numeric"
)

// sampleBegin is where a sample begins.
func sampleBegin(b *work.Build, x numbering, seed uint64) int {
	r := numeric.NewRand(seed, 'S')
	return r.IntN(x.nodes())
}

// block is how many nodes a section of a partition's files has.
const block = 1024

func blocks(n int) int { return (n + block - 1) / block }

// eachNeighbours calls visit with the neighbours of a partition's nodes in order.
func eachNeighbours(ctx context.Context, b *work.Build, p int, visit func(i int, to []int32,
	hidden []bool) error) error {
	return eachBlock(ctx, b, stages.Link, "links", p, func(d *sections.Decoder, lo, hi int) error {
		for i := lo; i < hi; i++ {
			to, hidden := readNeighbours(d)
			if d.Err != nil {
				return d.Err
			}
			if err := visit(i, to, hidden); err != nil {
				return err
			}
		}
		return nil
	})
}

// errStop ends a walk whose consumer wants no more.
var errStop = errors.New("stop")

// node is what embeddings and training rows say of a node beside its text. Strings share memory.
type node struct {
	id, class []byte
	time      int64
	shard     int
	seq       int64
}

func readNode(d *sections.Decoder) node {
	return node{id: d.StringBytes(), class: d.StringBytes(), time: d.Varint(), shard: int(d.Varint()), seq: d.Varint()}
}

// eachNode calls visit with the nodes of a partition in order.
func eachNode(ctx context.Context, b *work.Build, p int, visit func(i int, a node) error) error {
	return eachBlock(ctx, b, stages.Number, "nodes", p, func(d *sections.Decoder, lo, hi int) error {
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

// eachTextBlock calls visit with the texts of a partition, a block after the other.
func eachTextBlock(ctx context.Context, b *work.Build, partition int, visit func(lo int, texts []string) error) error {
	return eachBlock(ctx, b, stages.Number, "texts", partition, func(d *sections.Decoder, lo, hi int) error {
		texts := make([]string, 0, block)
		for range hi - lo {
			texts = append(texts, string(d.StringBytes()))
		}
		if d.Err != nil {
			return d.Err
		}
		return visit(lo, texts)
	})
}

// eachBlock calls visit with each block of an output that has one record for each node of a partition: those of nodes
// lo ≤ i < hi. An error of the decoder is one of the task that wrote it.
func eachBlock(ctx context.Context, b *work.Build, stage, name string, partition int,
	visit func(d *sections.Decoder, lo, hi int) error) error {
	x, err := numberingOf(ctx, b)
	if err != nil {
		return err
	}
	from, err := b.From(ctx, stage, partition)
	if err != nil {
		return err
	}
	in, err := from.OpenSections(ctx, name)
	if err != nil {
		return err
	}
	defer in.Close()
	n := x.sizeOf(partition)
	var read [][]byte
	for k := range blocks(n) {
		if len(read) == 0 {
			if read, err = in.ReadStretch(k, blocks(n)); err != nil {
				return err
			}
		}
		d := sections.Decoder{Rest: read[0]}
		read = read[1:]
		err = visit(&d, k*block, min(n, (k+1)*block))
		if d.Err != nil {
			return from.Explain(d.Err)
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}
