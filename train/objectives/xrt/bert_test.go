package xrt

import (
	"bytes"
	"context"
	"giantstream/internal/race"
	"giantstream/train/internal/graphtest"
	"io"
	"os"
	"slices"
	"testing"

	"giantstream/featurize/sparse"
	"giantstream/train/encoders/bert"
	"giantstream/train/encoders/bert/compute"
	"giantstream/train/encoders/bert/compute/cpu"
	"giantstream/train/encoders/bert/wordpiece"
	"giantstream/train/objectives/trainer"
)

// tinyBERT opens the random two-layer model that package bert is tested with.
func tinyBERT(t *testing.T, texts []string, o bert.TuneOptions) *bert.Network {
	t.Helper()
	dir := os.DirFS("../../encoders/bert/testdata/tiny")
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
	return bert.NewNetwork(tuner, func(i int) (string, error) { return texts[i], nil })
}

// eight is a label tree of two levels over eight labels: a leaf each, in two
// halves.
type eight struct{}

func (eight) Levels() int            { return 2 }
func (eight) Clusters(level int) int { return []int{2, 8}[level] }

func (eight) Cluster(level, label int) int32 {
	switch {
	case label >= 8:
		return -1
	case level == 0:
		return int32(label) / 4
	}
	return int32(label)
}

// TestBERTLearnsATinyGraphByHeart trains on texts of one telling word each: its
// neighbours are decided by the word, so the loss must all but vanish, or, where
// drop-out takes some of the words away, fall by half. Half-way it is interrupted.
func TestBERTLearnsATinyGraphByHeart(t *testing.T) {
	race.SkipComputing(t)
	words := []string{"steel", "screw", "box", "paper", "print", "stain", "fold", "sort"}
	fill := []string{"a", "b7", "the", "with c", "x, y", "-"}
	set := Set{Neighbours: &sparse.Matrix{Cols: 48, Start: []int64{0}}, Keys: graphtest.Keys(48), Tree: eight{}, Stream: 1}
	var texts []string
	for i := range 48 {
		word := i % len(words)
		texts = append(texts, fill[i%5]+" "+words[word]+" "+fill[i%6])
		set.Neighbours.Append(sparse.Vector{Index: []int32{int32(7 - word)}, Value: []float32{1}})
		set.Instances = append(set.Instances, int32(i))
	}
	o := Options{Steps: []int64{120}, Batch: 16, Rate: 3e-3, HeadRate: 0.02, Weights: Uniform}
	for name, c := range map[string]struct {
		dropout, dropTokens, left float64
	}{"plain": {0, 0, 0.1}, "drop-out": {0.05, 0.05, 0.5}} {
		t.Run(name, func(t *testing.T) {
			learnByHeart(t, texts, set, o, c.left, bert.TuneOptions{
				Pooling: compute.Mean, MaxTokens: 16, Dropout: c.dropout, DropTokens: c.dropTokens,
			})
		})
	}
}

// learnByHeart trains, and trains again from a state of half-way. left is the
// share of the loss that may remain.
func learnByHeart(t *testing.T, texts []string, set Set, o Options, left float64, tune bert.TuneOptions) {
	embeddings := func(h trainer.Hooks) ([]float32, trainer.Report) {
		tuner := tinyBERT(t, texts, tune)
		r, err := Train(t.Context(), tuner, set, o, h, nil)
		if err != nil {
			t.Fatal(err)
		}
		texts := []string{texts[0], texts[1], texts[7]}
		out := make([]float32, len(texts)*tuner.Dim())
		if err := tuner.Encoder().Encode(texts, out); err != nil {
			t.Fatal(err)
		}
		return out, r.Report
	}
	var half bytes.Buffer
	want, report := embeddings(trainer.Hooks{
		Due:  func(step int64) bool { return step == 60 },
		Save: func(_ context.Context, _ int64, s io.WriterTo) error { _, err := s.WriteTo(&half); return err },
	})
	first, last := report.Curve[0].Loss, report.Curve[len(report.Curve)-1].Loss
	t.Logf("loss %.3f at first, %.3f at last", first, last)
	if last > first*left {
		t.Errorf("loss %.3f at first, %.3f at last: the graph was not learnt", first, last)
	}
	got, report := embeddings(trainer.Hooks{Resume: &half})
	if report.Resumed != 60 || !slices.Equal(got, want) {
		t.Errorf("resumed after step %d, other weights than undisturbed", report.Resumed)
	}
}
