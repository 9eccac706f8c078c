package build

import (
	"context"
	"errors"

	"giantstream/train/generation/build/sections"
	"giantstream/train/generation/build/stages"
	"giantstream/train/numeric"
)

// begin is where a sample begins.
func (b *build) begin(x index, seed uint64) int {
	r := numeric.NewRand(seed, 'S')
	return r.IntN(x.nodes())
}

// block is how many nodes a section of a partition's files has.
const block = 1024

func blocks(n int) int { return (n + block - 1) / block }

// links calls visit with the neighbours of a partition's nodes in order.
func (b *build) links(ctx context.Context, p int, visit func(i int, to []int32, hidden []bool) error) error {
	return b.eachBlock(ctx, stages.Link, "links", p, func(d *sections.Decoder, lo, hi int) error {
		for i := lo; i < hi; i++ {
			to, hidden := neighbours(d)
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

// about is what embeddings and training rows say of a node beside its text. Strings share memory.
type about struct {
	id, class []byte
	time      int64
	shard     int
	seq       int64
}

func readAbout(d *sections.Decoder) about {
	return about{id: d.StringBytes(), class: d.StringBytes(), time: d.Varint(), shard: int(d.Varint()), seq: d.Varint()}
}

// about calls visit with the nodes of a partition in order.
func (b *build) about(ctx context.Context, p int, visit func(i int, a about) error) error {
	return b.eachBlock(ctx, stages.Number, "nodes", p, func(d *sections.Decoder, lo, hi int) error {
		for i := lo; i < hi; i++ {
			a := readAbout(d)
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

// texts calls visit with the texts of a partition, a block after the other.
func (b *build) texts(ctx context.Context, partition int, visit func(lo int, texts []string) error) error {
	return b.eachBlock(ctx, stages.Number, "texts", partition, func(d *sections.Decoder, lo, hi int) error {
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
func (b *build) eachBlock(ctx context.Context, stage, name string, partition int,
	visit func(d *sections.Decoder, lo, hi int) error) error {
	x, err := b.numbered(ctx)
	if err != nil {
		return err
	}
	from, err := b.from(ctx, stage, partition)
	if err != nil {
		return err
	}
	in, err := from.sections(ctx, name)
	if err != nil {
		return err
	}
	defer in.Close()
	n := x.size(partition)
	var read [][]byte
	for k := range blocks(n) {
		if len(read) == 0 {
			if read, err = in.stretch(k, blocks(n)); err != nil {
				return err
			}
		}
		d := sections.Decoder{Rest: read[0]}
		read = read[1:]
		err = visit(&d, k*block, min(n, (k+1)*block))
		if d.Err != nil {
			return from.explain(d.Err)
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}
