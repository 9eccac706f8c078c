package generation

import (
	"context"
	"io"
	"iter"

	"giantstream/featurize/targets"
	"giantstream/train/eval"
	"giantstream/train/internal/rng"
	"giantstream/train/xmc"
	"giantstream/train/xrt"
)

// trainingSet are the instances of a build, and pairs of held-out ones that judge. It
// implements xrt.Source.
type trainingSet struct {
	f         *building
	tree      xmc.LabelTree
	instances []int32
	pairs     *eval.Pairs // that judge, nil for none
}

func (f *building) trainingSet() *trainingSet {
	t := &trainingSet{f: f, tree: xmc.Finest(f.tree)}
	t.instances, t.pairs = f.holdOut()
	return t
}

// holdOut returns the instances that a network is trained on, and pairs of the others
// that judge it, nil where there are none.
func (f *building) holdOut() (instances []int32, pairs *eval.Pairs) {
	s := f.doc.Settings
	instances, held := eval.HoldOut(f.known.Neighbours, s.MaxDegree, s.Seed, streamBERTHold)
	if len(held) > 0 {
		pairs = eval.DrawPairs(f.known.Neighbours, held, eval.PairsEach, s.Seed, streamBERTPairs)
	}
	return instances, pairs
}

func (t *trainingSet) Instances() int64 { return int64(len(t.instances)) }

// Epoch yields the instances in the epoch's order.
func (t *trainingSet) Epoch(_ context.Context, epoch int, skip int64) iter.Seq2[xrt.Example, error] {
	return func(yield func(xrt.Example, error) bool) {
		r := rng.New(t.f.doc.Settings.Seed, streamBERTOrder, uint64(epoch))
		order := r.Perm(len(t.instances))
		for _, k := range order[min(skip, int64(len(order))):] {
			i := int(t.instances[k])
			text, err := t.f.corpus.texts.text(i)
			e := xrt.Example{Text: text}
			e.Targets, e.Counts = targets.Of(t.tree, t.f.known.Neighbours.Row(i).Index)
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

func (t *trainingSet) levels() []xmc.Level { return xmc.LevelsOf(t.tree) }

// hooks connect a training, of embeddings of dimension dim, to its checkpoints.
func (t *trainingSet) hooks(dim int, c *checkpoints, state io.Reader) xrt.Hooks {
	h := xrt.Hooks{Due: c.due, Save: func(ctx context.Context, _ int64, s io.WriterTo) error { return c.save(ctx, s) }, Resume: state}
	if t.pairs != nil {
		h.Judge = func(_ context.Context, embed func([]string, []float32) error) (float64, error) {
			return t.f.judge(t.pairs, dim, embed)
		}
	}
	return h
}

// judge is the AUC of held-out instances' neighbours.
func (f *building) judge(p *eval.Pairs, dim int, embed func([]string, []float32) error) (float64, error) {
	texts := make([]string, len(p.Nodes))
	for k, i := range p.Nodes {
		var err error
		if texts[k], err = f.corpus.texts.text(int(i)); err != nil {
			return 0, err
		}
	}
	z := make([]float32, len(texts)*dim)
	if err := embed(texts, z); err != nil {
		return 0, err
	}
	return p.AUC(z, dim), nil
}
