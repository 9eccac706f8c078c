package bert

import (
	"fmt"
	"io"

	"giantstream/featurize/artifact"
	"giantstream/train/bert/compute"
)

// A tuner's state is an artifact: docs/format/bert.md.
const (
	stateMagic   = "GSBERTRN"
	stateVersion = 1
	maxSteps     = 1 << 50
	maxName      = 100
)

// WriteState writes what a tuner of the same model, with the same options, goes on
// from with the same bits: weights, moments, number of steps. What Backward
// added since the last Update is not part of it.
func (t *Tuner) WriteState(w io.Writer) error {
	a := artifact.NewWriter(w, stateMagic, stateVersion)
	a.U64(uint64(t.steps))
	a.U64(uint64(len(t.weights)))
	var scratch []float32
	for i, p := range t.weights {
		a.Bytes([]byte(p.name))
		for _, b := range []compute.Buffer{*p.buffer, t.means[i], t.squares[i]} {
			if n := b.Len(); n > cap(scratch) {
				scratch = make([]float32, n)
			}
			x := scratch[:b.Len()]
			if err := t.backend.Read(x, b); err != nil {
				return fmt.Errorf("bert: state: %w", err)
			}
			a.Float32s(x)
		}
	}
	if err := a.Close(); err != nil {
		return fmt.Errorf("bert: write the state: %w", err)
	}
	return nil
}

// ReadState goes on from a state of WriteState. After an error the tuner is as
// it was. Gradients that were not used are dropped.
func (t *Tuner) ReadState(r io.Reader) error {
	a, err := artifact.NewReader(r, stateMagic, stateVersion)
	if err != nil {
		return fmt.Errorf("bert: state: %w", err)
	}
	steps := a.Int("steps", 0, maxSteps)
	if n := a.Int("number of arrays", 0, 1<<20); n != len(t.weights) {
		a.Fail("it has %d arrays, this model trains %d", n, len(t.weights))
	}
	arrays := make([][3][]float32, len(t.weights))
	for i, p := range t.weights {
		if name := string(a.Bytes("name", maxName)); name != p.name {
			a.Fail("array %d is %q, this model has %q there", i, name, p.name)
		}
		for j := range arrays[i] {
			want := (*p.buffer).Len()
			x := a.Float32s(p.name, want)
			if len(x) != want {
				a.Fail("%s has %d numbers, in this model %d", p.name, len(x), want)
			}
			arrays[i][j] = x
		}
		if a.Err() != nil {
			break
		}
	}
	if err := a.Close(); err != nil {
		return fmt.Errorf("bert: state: %w", err)
	}
	for i, x := range arrays {
		t.backend.Write(*t.weights[i].buffer, x[0])
		t.backend.Write(t.means[i], x[1])
		t.backend.Write(t.squares[i], x[2])
		t.backend.Zero(*t.gradients[i].buffer)
	}
	t.steps, t.ready = int64(steps), false
	return nil
}
