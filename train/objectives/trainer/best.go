package trainer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"slices"

	"giantstream/internal/tempfile"
	"giantstream/train"
)

// best is the weights to return: the network's state in a temporary file, the
// objective's in memory. Without validation there is none.
type best struct {
	score   float64
	number  int // in Place.scores
	file    *tempfile.File
	network int64 // bytes of the state in file
	weights [][]float32
}

func (b *best) close() {
	if b.file != nil {
		_ = b.file.Close() // nothing in it is wanted any more
		b.file = nil
	}
}

// validate scores the weights, unless that has been done since the last step,
// and keeps them if they are the best so far.
func (t *trainer) validate(ctx context.Context) error {
	if n := len(t.at.scores); t.hooks.Validate == nil || n > 0 && t.at.scores[n-1].Step == t.at.Step {
		return nil
	}
	score, err := t.hooks.Validate(ctx, t.embed)
	if err != nil {
		return fmt.Errorf("train: validation after step %d: %w", t.at.Step, err)
	}
	if math.IsNaN(score) {
		return fmt.Errorf("train: validation after step %d: no number: %w", t.at.Step, train.ErrDiverged)
	}
	s := Score{Step: t.at.Step, Level: -1, Score: score}
	if t.at.Step > 0 {
		s.Level = t.objective.Level(t.at.Stage)
	}
	t.at.scores = append(t.at.scores, s)
	t.at.epochsWithoutBest++
	if score > t.at.top {
		t.at.top, t.at.epochsWithoutBest = score, 0
	}
	if score <= t.best.score {
		return nil
	}
	t.best.score, t.best.number = score, len(t.at.scores)-1
	t.best.weights = nil
	for _, w := range t.objective.Weights() {
		t.best.weights = append(t.best.weights, slices.Clone(w))
	}
	return t.best.keep(t.net.WriteState)
}

// keep replaces the network's best state by what write writes, in the same file: its pages
// are in the system's cache already.
func (b *best) keep(write func(io.Writer) error) (err error) {
	if b.file == nil {
		b.file, err = tempfile.Create("giantstream-best-*")
	} else {
		_, err = b.file.Seek(0, io.SeekStart)
	}
	if err != nil {
		return explainBest(err)
	}
	f := b.file
	w := bufio.NewWriterSize(f, 1<<20)
	if err = write(w); err == nil {
		err = w.Flush()
	}
	if err == nil {
		b.network, err = f.Seek(0, io.SeekCurrent)
	}
	return explainBest(err)
}

// explainBest names what failed. What the file system says has a remedy; the network may fail, too.
func explainBest(err error) error {
	if errors.As(err, new(*fs.PathError)) {
		return fmt.Errorf("train: best weights (set TMPDIR to a larger disk): %w", err)
	}
	if err != nil {
		return fmt.Errorf("train: best weights: %w", err)
	}
	return nil
}

// state returns a reader of the network's best state.
func (b *best) state() io.Reader { return io.NewSectionReader(b.file, 0, b.network) }

// result puts network and objective back to their best weights.
func (t *trainer) result() (*Report, error) {
	r := &Report{
		Instances: int64(len(t.instances)), Steps: t.at.Step,
		Level: t.objective.Level(len(t.plan) - 1), Step: t.at.Step,
		Curve: t.at.curve, Scores: t.at.scores, Epochs: t.at.epochs,
	}
	if t.best.file == nil {
		return r, nil
	}
	s := t.at.scores[t.best.number]
	r.Level, r.Step = s.Level, s.Step
	if err := t.net.ReadState(bufio.NewReaderSize(t.best.state(), 1<<20)); err != nil {
		return nil, fmt.Errorf("train: best weights: %w", err)
	}
	for i, w := range t.objective.Weights() {
		copy(w, t.best.weights[i])
	}
	return r, nil
}
