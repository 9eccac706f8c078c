package xrt

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"giantstream/sink/tempfile"
)

// best is the weights to return: the network's state in a temporary file, the
// heads in memory. Without a judge there is none.
type best struct {
	score   float64
	judged  int // its number in place.Judged
	file    *tempfile.File
	network int64 // bytes of the state in file
	heads   [][]float32
}

func (b *best) close() {
	if b.file != nil {
		_ = b.file.Close() // nothing in it is wanted any more
		b.file = nil
	}
}

// judge scores the weights, unless that has been done since the last step,
// and keeps them if they are the best so far.
func (t *trainer) judge(ctx context.Context) error {
	if n := len(t.at.Judged); t.hooks.Judge == nil || n > 0 && t.at.Judged[n-1].Step == t.at.Step {
		return nil
	}
	score, err := t.hooks.Judge(ctx, t.embed)
	if err != nil {
		return fmt.Errorf("xrt: judge after step %d: %w", t.at.Step, err)
	}
	if math.IsNaN(score) {
		return fmt.Errorf("xrt: judge after step %d: no number: %w", t.at.Step, ErrDiverged)
	}
	j := Judgment{Step: t.at.Step, Level: t.level(), Score: score}
	if t.at.Step == 0 {
		j.Level = -1
	}
	t.at.Judged = append(t.at.Judged, j)
	t.at.Bad++
	if score > t.at.Top {
		t.at.Top, t.at.Bad = score, 0
	}
	if score <= t.best.score {
		return nil
	}
	t.best.score, t.best.judged = score, len(t.at.Judged)-1
	t.best.heads = make([][]float32, len(t.heads.Weights))
	for l, w := range t.heads.Weights {
		t.best.heads[l] = slices.Clone(w)
	}
	return t.best.keep(t.net.WriteState)
}

// keep replaces the network's best state by what write writes.
func (b *best) keep(write func(io.Writer) error) error {
	b.close()
	f, err := tempfile.Create("giantstream-best-*")
	if err != nil {
		return fmt.Errorf("xrt: best weights (set TMPDIR to a larger disk): %w", err)
	}
	b.file = f
	w := bufio.NewWriterSize(f, 1<<20)
	if err = write(w); err == nil {
		err = w.Flush()
	}
	if err == nil {
		b.network, err = f.Seek(0, io.SeekCurrent)
	}
	if err != nil {
		return fmt.Errorf("xrt: best weights (set TMPDIR to a larger disk): %w", err)
	}
	return nil
}

// state returns a reader of the network's best state.
func (b *best) state() io.Reader { return io.NewSectionReader(b.file, 0, b.network) }

// result puts the network back to its best weights.
func (t *trainer) result() (*Result, error) {
	r := &Result{Report: Report{
		Instances: t.instances, Steps: t.at.Step, Level: t.level(), Step: t.at.Step, Curve: t.at.Curve, Judged: t.at.Judged,
	}}
	if t.best.file == nil {
		r.Matcher = t.matcher(t.heads.Weights)
		return r, nil
	}
	j := t.at.Judged[t.best.judged]
	r.Report.Level, r.Report.Step = j.Level, j.Step
	if err := t.net.ReadState(bufio.NewReaderSize(t.best.state(), 1<<20)); err != nil {
		return nil, fmt.Errorf("xrt: best weights: %w", err)
	}
	r.Matcher = t.matcher(t.best.heads)
	return r, nil
}
