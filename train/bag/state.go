package bag

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"

	"giantstream/featurize/artifact"
	"giantstream/train/internal/rng"
)

// ErrOtherRun: a state was saved by a run on other data or with other
// options, so that continuing from it would give neither run's result.
var ErrOtherRun = errors.New("the checkpoint belongs to another run (other data or options); remove it to start afresh")

const (
	stateMagic   = "GSBAGRUN"
	stateVersion = 1
	// Limits on what a state may claim to hold; arrays are read in pieces,
	// so a lie costs no more memory than the bytes that are there.
	maxNumbers  = math.MaxInt32
	maxLevels   = 64
	maxProgress = 1 << 20
)

// State is a run of Train between two steps: all that later steps depend on
// besides data and options. docs/format/encoder.md describes its bytes.
type State struct {
	run     uint64 // fingerprint of data and options
	at      place
	best    best
	vectors []float32
	square  []float32
	weights [][]float32
	mean    [][]float32
	moments [][]float32
}

// Step returns the number of steps taken.
func (s *State) Step() int64 { return s.at.Step }

// state returns the present state; it shares the trainer's arrays.
func (t *trainer) state() *State {
	return &State{
		run: t.fingerprint(), at: t.at, best: t.best, vectors: t.table.vectors, square: t.square,
		weights: t.heads.Weights, mean: t.heads.Mean, moments: t.heads.Square,
	}
}

// restore continues from s, whose arrays become the trainer's.
func (t *trainer) restore(s *State) error {
	if s.run != t.fingerprint() {
		return fmt.Errorf("bag: %w", ErrOtherRun)
	}
	ok := len(s.vectors) == len(t.table.vectors) && len(s.best.vectors) == len(s.vectors) &&
		len(s.square) == len(t.square) && len(s.weights) == len(t.heads.Weights)
	for l := 0; ok && l < len(s.weights); l++ {
		n := len(t.heads.Weights[l])
		ok = len(s.weights[l]) == n && len(s.mean[l]) == n && len(s.moments[l]) == n && len(s.best.heads[l]) == n
	}
	if !ok {
		return fmt.Errorf("bag: %w: its arrays have other shapes", ErrOtherRun)
	}
	t.at, t.best = s.at, s.best
	t.table.vectors, t.square = s.vectors, s.square
	t.heads.Weights, t.heads.Mean, t.heads.Square = s.weights, s.mean, s.moments
	return nil
}

// fingerprint hashes data and options, as far as they change the result.
func (t *trainer) fingerprint() uint64 {
	if t.identity != 0 {
		return t.identity
	}
	o := t.o
	o.Workers = 0
	rows, cols := t.d.Features.Size()
	h := rng.String(fmt.Sprintf("%+v %d %d", o, t.d.Dim, cols))
	mix := func(v uint32) { h = (h ^ uint64(v)) * 0x100000001B3 }
	for i := range rows {
		x := t.d.Features.Row(i)
		for k, f := range x.Index {
			mix(uint32(f))
			mix(math.Float32bits(x.Value[k]))
		}
		h = rng.Mix(h)
	}
	for _, v := range t.d.Neighbours.Index {
		mix(uint32(v))
	}
	h = rng.Mix(h)
	for _, list := range [][]float32{t.d.Labels, t.d.Weights} {
		for _, v := range list {
			mix(math.Float32bits(v))
		}
		h = rng.Mix(h)
	}
	for l := range t.problem.Levels {
		for _, v := range t.problem.Levels[l].Targets.Index {
			mix(uint32(v))
		}
		h = rng.Mix(h)
	}
	t.identity = h
	return h
}

// progressJSON is the part of a state that is not arrays.
type progressJSON struct {
	Step      int64   `json:"step"`
	Stage     int     `json:"stage"`
	Epoch     int     `json:"epoch"`
	Batch     int     `json:"batch"`
	Bad       int     `json:"bad"`
	Top       uint64  `json:"top_bits"` // float64 bits: it may be infinite
	Loss      uint64  `json:"loss_bits"`
	BestScore uint64  `json:"best_score_bits"`
	BestEpoch int     `json:"best_epoch"`
	BestLevel int     `json:"best_level"`
	History   []entry `json:"history"`
}

type entry struct {
	Levels int    `json:"levels"`
	Loss   uint64 `json:"loss_bits"`
	AUC    uint64 `json:"auc_bits"`
}

// WriteTo writes the state as an artifact.
func (s *State) WriteTo(w io.Writer) (int64, error) {
	a := artifact.NewWriter(w, stateMagic, stateVersion)
	p := progressJSON{
		Step: s.at.Step, Stage: s.at.Stage, Epoch: s.at.Epoch, Batch: s.at.Batch, Bad: s.at.Bad,
		Top: math.Float64bits(s.at.Top), Loss: math.Float64bits(s.at.Loss),
		BestScore: math.Float64bits(s.best.score), BestEpoch: s.best.epoch, BestLevel: s.best.level,
	}
	for _, e := range s.at.History {
		p.History = append(p.History, entry{e.Levels, math.Float64bits(e.Loss), math.Float64bits(e.HeldOutAUC)})
	}
	progress, err := json.Marshal(p)
	if err != nil {
		return 0, fmt.Errorf("bag: state: %w", err)
	}
	a.U64(s.run)
	a.Bytes(progress)
	a.Float32s(s.vectors)
	a.Float32s(s.square)
	a.Float32s(s.best.vectors)
	a.U64(uint64(len(s.weights)))
	for l := range s.weights {
		for _, list := range [][]float32{s.weights[l], s.mean[l], s.moments[l], s.best.heads[l]} {
			a.Float32s(list)
		}
	}
	err = a.Close()
	return a.Written(), err
}

// ReadState reads what WriteTo wrote. The error is artifact.ErrCorrupt or
// artifact.ErrUnknown when the bytes are to blame.
func ReadState(r io.Reader) (*State, error) {
	a, err := artifact.NewReader(r, stateMagic, stateVersion)
	if err != nil {
		return nil, fmt.Errorf("bag: state: %w", err)
	}
	s := &State{run: a.U64()}
	var p progressJSON
	if b := a.Bytes("progress", maxProgress); a.Err() == nil {
		if err := json.Unmarshal(b, &p); err != nil {
			a.Fail("progress: %v", err)
		}
	}
	if p.Step < 0 || p.Stage < 0 || p.Epoch < 0 || p.Batch < 0 || p.Bad < 0 {
		a.Fail("progress is negative")
	}
	s.at = place{
		Step: p.Step, Stage: p.Stage, Epoch: p.Epoch, Batch: p.Batch, Bad: p.Bad,
		Top: math.Float64frombits(p.Top), Loss: math.Float64frombits(p.Loss),
	}
	for _, e := range p.History {
		s.at.History = append(s.at.History, Epoch{e.Levels, math.Float64frombits(e.Loss), math.Float64frombits(e.AUC)})
	}
	s.best = best{score: math.Float64frombits(p.BestScore), epoch: p.BestEpoch, level: p.BestLevel}
	s.vectors = a.Float32s("vectors", maxNumbers)
	s.square = a.Float32s("squares", maxNumbers)
	s.best.vectors = a.Float32s("best vectors", maxNumbers)
	for range a.Int("levels", 0, maxLevels) {
		s.weights = append(s.weights, a.Float32s("head", maxNumbers))
		s.mean = append(s.mean, a.Float32s("head mean", maxNumbers))
		s.moments = append(s.moments, a.Float32s("head square", maxNumbers))
		s.best.heads = append(s.best.heads, a.Float32s("best head", maxNumbers))
	}
	if err := a.Close(); err != nil {
		return nil, fmt.Errorf("bag: state: %w", err)
	}
	return s, nil
}
