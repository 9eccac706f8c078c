package xrt

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"giantstream/featurize/artifact"
	"giantstream/train/internal/rng"
)

// ErrOtherRun: a state was saved by a run on other data or with other
// options, so that continuing from it would give neither run's result.
var ErrOtherRun = errors.New("the checkpoint belongs to another run (other data or options); remove it to start afresh")

const (
	stateMagic   = "GSXRTRUN"
	stateVersion = 1
	// chunk is the size of the pieces that a network's state is cut into.
	chunk = 1 << 20
	// maxHistory bounds the points and judgments that a state may hold.
	maxHistory = 1 << 20
)

// state writes a trainer out between two steps, all that later steps depend on
// besides source and options.
type state trainer

// WriteTo writes the state as an artifact.
func (s *state) WriteTo(w io.Writer) (int64, error) {
	t := (*trainer)(s)
	a := artifact.NewWriter(w, stateMagic, stateVersion)
	a.U64(t.fingerprint())
	for _, v := range []int64{t.at.Step, int64(t.at.Stage), t.at.StageStep, int64(t.at.Epoch), t.at.Seen, int64(t.at.Bad)} {
		a.U64(uint64(v))
	}
	a.F64(t.at.Top)
	a.F64(t.at.Loss)
	a.U64(uint64(len(t.at.Curve)))
	for _, p := range t.at.Curve {
		a.U64(uint64(p.Step))
		a.U64(uint64(p.Level))
		a.F64(p.Loss)
	}
	a.U64(uint64(len(t.at.Judged)))
	for _, j := range t.at.Judged {
		a.U64(uint64(j.Step))
		a.U64(uint64(j.Level + 1)) // -1: before training
		a.F64(j.Score)
	}
	for l := range t.heads.Weights {
		a.Float32s(t.heads.Weights[l])
		a.Float32s(t.heads.Mean[l])
		a.Float32s(t.heads.Square[l])
	}
	if err := writeChunks(a, t.net.WriteState); err != nil {
		return a.Written(), fmt.Errorf("xrt: state of the network: %w", err)
	}
	if t.best.file == nil {
		a.U64(0)
		err := a.Close()
		return a.Written(), err
	}
	a.U64(uint64(t.best.judged + 1))
	for _, h := range t.best.heads {
		a.Float32s(h)
	}
	err := writeChunks(a, func(w io.Writer) error {
		_, err := io.Copy(w, t.best.state())
		return err
	})
	if err != nil {
		return a.Written(), fmt.Errorf("xrt: best weights: %w", err)
	}
	err = a.Close()
	return a.Written(), err
}

// restore continues from a saved state. The error is artifact.ErrCorrupt or
// artifact.ErrUnknown when the bytes are to blame.
func (t *trainer) restore(r io.Reader) error {
	a, err := artifact.NewReader(r, stateMagic, stateVersion)
	if err != nil {
		return fmt.Errorf("xrt: checkpoint: %w", err)
	}
	if run := a.U64(); a.Err() == nil && run != t.fingerprint() {
		return fmt.Errorf("xrt: %w", ErrOtherRun)
	}
	t.restorePlace(a)
	for l, w := range t.heads.Weights {
		for _, to := range [][]float32{w, t.heads.Mean[l], t.heads.Square[l]} {
			readInto(a, to)
		}
	}
	if err := readChunks(a, t.net.ReadState); err != nil {
		return fmt.Errorf("xrt: checkpoint: network: %w", err)
	}
	if n := a.Int("best", 0, len(t.at.Judged)); n > 0 {
		t.best.judged, t.best.score = n-1, t.at.Judged[n-1].Score
		for _, w := range t.heads.Weights {
			h := make([]float32, len(w))
			readInto(a, h)
			t.best.heads = append(t.best.heads, h)
		}
		err := readChunks(a, func(r io.Reader) error {
			return t.best.keep(func(w io.Writer) error {
				_, err := io.Copy(w, r)
				return err
			})
		})
		if err != nil {
			return fmt.Errorf("xrt: checkpoint: %w", err)
		}
	}
	if err := a.Close(); err != nil {
		return fmt.Errorf("xrt: checkpoint: %w", err)
	}
	return nil
}

func (t *trainer) restorePlace(a *artifact.Reader) {
	const many = 1 << 62
	t.at.Step = int64(a.Int("step", 0, many))
	t.at.Stage = a.Int("stage", 0, len(t.plan)-1)
	if a.Err() != nil {
		return
	}
	t.at.StageStep = int64(a.Int("step of stage", 0, int(t.plan[t.at.Stage])))
	t.at.Epoch = a.Int("epoch", 0, many)
	t.at.Seen = int64(a.Int("examples", 0, many))
	t.at.Bad = a.Int("judgments", 0, many)
	t.at.Top, t.at.Loss = a.F64(), a.F64()
	for range a.Int("points", 0, maxHistory) {
		if a.Err() != nil {
			return
		}
		t.at.Curve = append(t.at.Curve, Point{int64(a.Int("step", 0, many)), a.Int("level", 0, t.levels), a.F64()})
	}
	for range a.Int("judgments", 0, maxHistory) {
		if a.Err() != nil {
			return
		}
		t.at.Judged = append(t.at.Judged, Judgment{int64(a.Int("step", 0, many)), a.Int("level", 0, t.levels) - 1, a.F64()})
	}
}

// readInto reads an array of exactly len(to) numbers.
func readInto(a *artifact.Reader, to []float32) {
	if copy(to, a.Float32s("head", len(to))) != len(to) {
		a.Fail("a head is too short")
	}
}

// fingerprint hashes what a run is: options, tree, size of the training set.
func (t *trainer) fingerprint() uint64 {
	o := t.o
	o.Workers = 0
	h := rng.String(fmt.Sprintf("%+v %d %d", o, t.net.Dim(), t.instances))
	for _, l := range t.problem.Levels {
		h = rng.Mix(h ^ uint64(l.Clusters))
		for _, p := range l.Parent {
			h = rng.Mix(h ^ uint64(p))
		}
	}
	return h
}

// writeChunks writes what write writes, of unknown length: byte strings of at
// most chunk bytes, the last one empty.
func writeChunks(a *artifact.Writer, write func(io.Writer) error) error {
	b := bufio.NewWriterSize(chunkWriter{a}, chunk)
	if err := write(b); err != nil {
		return err
	}
	if err := b.Flush(); err != nil {
		return err
	}
	a.Bytes(nil)
	return nil
}

type chunkWriter struct{ a *artifact.Writer }

func (c chunkWriter) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		n := min(len(rest), chunk)
		c.a.Bytes(rest[:n])
		rest = rest[n:]
	}
	return len(b), nil
}

// readChunks gives read what writeChunks was given; read must take all of it.
func readChunks(a *artifact.Reader, read func(io.Reader) error) error {
	c := &chunkReader{a: a}
	if err := read(c); err != nil {
		if a.Err() != nil {
			return a.Err()
		}
		return err
	}
	if n, _ := c.Read(make([]byte, 1)); n > 0 {
		a.Fail("bytes follow the network's state")
	}
	return a.Err()
}

type chunkReader struct {
	a    *artifact.Reader
	rest []byte
	done bool
}

func (c *chunkReader) Read(b []byte) (int, error) {
	if len(c.rest) == 0 && !c.done {
		c.rest = c.a.Bytes("network", chunk)
		c.done = len(c.rest) == 0
	}
	if err := c.a.Err(); err != nil {
		return 0, err
	}
	if c.done {
		return 0, io.EOF
	}
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}
