package bert

import (
	"fmt"
	"io"
	"runtime"

	"giantstream/internal/artifact"
	"giantstream/train/encoders/bert/compute"
)

// A tuner's state is an artifact: docs/format/bert.md.
const (
	stateMagic   = "GSBERTRN"
	stateVersion = 1
	maxSteps     = 1 << 50
	maxName      = 100
)

// WriteState writes weights, moments and the number of steps. A tuner of the same model with the
// same options continues from them to the same bits. Gradients since the last Update are not part
// of the state.
func (t *Tuner) WriteState(w io.Writer) error {
	if err := t.usable(); err != nil {
		return err
	}
	defer runtime.KeepAlive(t) // whose end frees the weights
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
			if err := read(t.backend, x, b); err != nil {
				return fmt.Errorf("state: %w", err)
			}
			a.Float32s(x)
		}
	}
	if err := a.Close(); err != nil {
		return fmt.Errorf("bert: write the state: %w", err)
	}
	return nil
}

// ReadState reads what WriteState wrote, an array at a time. Unused gradients are dropped. After an
// error, only some of the arrays may have been read, so the tuner refuses to work until it has read
// a whole state.
func (t *Tuner) ReadState(r io.Reader) error {
	if t.closed {
		return ErrClosed
	}
	t.spoilt, t.ready = true, false
	a, err := artifact.NewReader(r, stateMagic, stateVersion)
	if err != nil {
		return fmt.Errorf("bert: state: %w", err)
	}
	steps := a.Int("steps", 0, maxSteps)
	if n := a.Int("number of arrays", 0, 1<<20); n != len(t.weights) {
		a.Fail("it has %d arrays, this model trains %d", n, len(t.weights))
	}
	for i, p := range t.weights {
		if name := string(a.Bytes("name", maxName)); name != p.name {
			a.Fail("array %d is %q, this model has %q there", i, name, p.name)
		}
		for _, b := range []compute.Buffer{*p.buffer, t.means[i], t.squares[i]} {
			x := a.Float32s(p.name, b.Len())
			if len(x) != b.Len() {
				a.Fail("%s has %d numbers, in this model %d", p.name, len(x), b.Len())
			}
			t.backend.Write(b, x)
		}
		t.backend.Zero(*t.gradients[i].buffer)
		if a.Err() != nil {
			break
		}
	}
	if err := a.Close(); err != nil {
		return fmt.Errorf("bert: state: %w", err)
	}
	t.steps, t.spoilt = int64(steps), false
	return nil
}
