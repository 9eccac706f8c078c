package xrt

import (
	"bytes"
	"context"
	"io"
	"os"
	"slices"
	"testing"

	"giantstream/featurize/targets"
	"giantstream/train/bert"
	"giantstream/train/bert/compute"
	"giantstream/train/bert/compute/cpu"
	"giantstream/train/bert/wordpiece"
	"giantstream/train/xmc"
)

// tinyBERT opens the random two-layer model that package bert is tested with.
func tinyBERT(t *testing.T, o bert.TuneOptions) *bert.Tuner {
	t.Helper()
	dir := os.DirFS("../bert/testdata/tiny")
	tokenizer, err := wordpiece.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	model, err := bert.Load(dir, cpu.New())
	if err != nil {
		t.Fatal(err)
	}
	tuner, err := bert.NewTuner(model, tokenizer, o)
	if err != nil {
		t.Fatal(err)
	}
	return tuner
}

// eight is a label tree of two levels over eight labels: a leaf each, in two
// halves.
type eight struct{}

func (eight) Levels() int                 { return 2 }
func (eight) Cluster(_, label int) int32  { return int32(label) } // asked for leaves only
func (eight) Parent(_ int, c int32) int32 { return c / 4 }

// TestBERTLearnsATinyGraphByHeart trains on texts of one telling word each: its
// neighbours are decided by the word, so the loss must all but vanish, or, where
// drop-out takes some of the words away, fall by half. Half-way it is interrupted.
func TestBERTLearnsATinyGraphByHeart(t *testing.T) {
	words := []string{"steel", "screw", "box", "paper", "print", "stain", "fold", "sort"}
	fill := []string{"a", "b7", "the", "with c", "x, y", "-"}
	var src list
	for i := range 48 {
		word := i % len(words)
		e := Example{Text: fill[i%5] + " " + words[word] + " " + fill[i%6]}
		e.Targets, e.Counts = targets.Of(eight{}, []int32{int32(7 - word)})
		src.examples = append(src.examples, e)
	}
	levels := []xmc.Level{{Clusters: 2}, {Clusters: 8, Parent: []int32{0, 0, 0, 0, 1, 1, 1, 1}}}
	o := Options{Steps: []int64{120}, Batch: 16, Rate: 3e-3, HeadRate: 0.02, Uniform: true}
	for name, c := range map[string]struct {
		dropout, dropTokens, left float64
	}{"plain": {0, 0, 0.1}, "drop-out": {0.05, 0.05, 0.5}} {
		t.Run(name, func(t *testing.T) {
			learnByHeart(t, src, levels, o, c.left, bert.TuneOptions{
				Pooling: compute.Mean, MaxTokens: 16, Dropout: c.dropout, DropTokens: c.dropTokens,
			})
		})
	}
}

// learnByHeart trains, and trains again from a state of half-way. left is the
// share of the loss that may remain.
func learnByHeart(t *testing.T, src list, levels []xmc.Level, o Options, left float64, tune bert.TuneOptions) {
	embeddings := func(h Hooks) ([]float32, Report) {
		tuner := tinyBERT(t, tune)
		r, err := Train(t.Context(), tuner, src, levels, o, h, nil)
		if err != nil {
			t.Fatal(err)
		}
		texts := []string{src.examples[0].Text, src.examples[1].Text, src.examples[7].Text}
		out := make([]float32, len(texts)*tuner.Dim())
		if err := tuner.Encoder().Encode(texts, out); err != nil {
			t.Fatal(err)
		}
		return out, r.Report
	}
	var half bytes.Buffer
	want, report := embeddings(Hooks{
		Due:  func(step int64) bool { return step == 60 },
		Save: func(_ context.Context, _ int64, s io.WriterTo) error { _, err := s.WriteTo(&half); return err },
	})
	first, last := report.Curve[0].Loss, report.Curve[len(report.Curve)-1].Loss
	t.Logf("loss %.3f at first, %.3f at last", first, last)
	if last > first*left {
		t.Errorf("loss %.3f at first, %.3f at last: the graph was not learnt", first, last)
	}
	got, report := embeddings(Hooks{Resume: &half})
	if report.Resumed != 60 || !slices.Equal(got, want) {
		t.Errorf("resumed after step %d, other weights than undisturbed", report.Resumed)
	}
}
