package trainer

import (
	"bufio"
	"errors"
	"fmt"
	"hash/fnv"
	"io"

	"giantstream/internal/artifact"
)

// ErrOtherRun: a state was saved by a run on other data or with other
// options, so that continuing from it would give neither run's result.
var ErrOtherRun = errors.New(
	"the checkpoint belongs to another run (other data or options); remove it to start from the beginning")

const (
	stateMagic   = "GSTRAINR"
	stateVersion = 1
	// chunk is the size of the pieces that a network's state is cut into.
	chunk = 1 << 20
	// maxHistory bounds the points, scores and epochs that a state may hold.
	maxHistory = 1 << 20
	many       = 1 << 62
)

// state writes a trainer out between two steps, all that later steps depend on
// besides instances and options.
type state trainer

// arrays are the objective's own numbers, in the order of the checkpoint.
func (t *trainer) arrays() [][]float32 {
	return append(append([][]float32(nil), t.objective.Weights()...), t.objective.Moments()...)
}

// WriteTo writes the state as an artifact.
func (s *state) WriteTo(w io.Writer) (int64, error) {
	t := (*trainer)(s)
	a := artifact.NewWriter(w, stateMagic, stateVersion)
	a.U64(t.fingerprint())
	for _, v := range []int64{t.at.Step, int64(t.at.Stage), t.at.StageStep, int64(t.at.Epoch), int64(t.at.Seen),
		int64(t.at.epochsWithoutBest), t.at.epochSteps} {
		a.U64(uint64(v))
	}
	for _, v := range []float64{t.at.top, t.at.loss, t.at.epochLoss} {
		a.F64(v)
	}
	entry := func(step int64, level int, value float64) {
		a.U64(uint64(step))
		a.U64(uint64(level + 1)) // -1: before training
		a.F64(value)
	}
	a.U64(uint64(len(t.at.curve)))
	for _, p := range t.at.curve {
		entry(p.Step, p.Level, p.Loss)
	}
	a.U64(uint64(len(t.at.scores)))
	for _, s := range t.at.scores {
		entry(s.Step, s.Level, s.Score)
	}
	a.U64(uint64(len(t.at.epochs)))
	for _, e := range t.at.epochs {
		entry(e.Step, e.Level, e.Loss)
	}
	for _, x := range t.arrays() {
		a.Float32s(x)
	}
	if err := writeChunks(a, t.net.WriteState); err != nil {
		return a.Written(), fmt.Errorf("train: state of the network: %w", err)
	}
	if t.best.file == nil {
		a.U64(0)
		err := a.Close()
		return a.Written(), err
	}
	a.U64(uint64(t.best.number + 1))
	for _, x := range t.best.weights {
		a.Float32s(x)
	}
	err := writeChunks(a, func(w io.Writer) error {
		_, err := io.Copy(w, t.best.state())
		return err
	})
	if err != nil {
		return a.Written(), fmt.Errorf("train: best weights: %w", err)
	}
	err = a.Close()
	return a.Written(), err
}

// restore continues from a saved state. The error is artifact.ErrCorrupt or
// artifact.ErrUnknown when the bytes are to blame.
func (t *trainer) restore(r io.Reader) error {
	a, err := artifact.NewReader(r, stateMagic, stateVersion)
	if errors.Is(err, artifact.ErrUnknown) {
		return fmt.Errorf("train: checkpoint of another version of this program; "+
			"remove it to start from the beginning: %w", err)
	}
	if err != nil {
		return fmt.Errorf("train: checkpoint: %w", err)
	}
	if run := a.U64(); a.Err() == nil && run != t.fingerprint() {
		return fmt.Errorf("train: %w", ErrOtherRun)
	}
	t.restorePlace(a)
	for _, to := range t.arrays() {
		readInto(a, to)
	}
	if err := readChunks(a, t.net.ReadState); err != nil {
		return fmt.Errorf("train: checkpoint: network: %w", err)
	}
	if n := a.Int("best", 0, len(t.at.scores)); n > 0 {
		t.best.number, t.best.score = n-1, t.at.scores[n-1].Score
		for _, w := range t.objective.Weights() {
			x := make([]float32, len(w))
			readInto(a, x)
			t.best.weights = append(t.best.weights, x)
		}
		err := readChunks(a, func(r io.Reader) error {
			return t.best.keep(func(w io.Writer) error {
				_, err := io.Copy(w, r)
				return err
			})
		})
		if err != nil {
			return fmt.Errorf("train: checkpoint: %w", err)
		}
	}
	if err := a.Close(); err != nil {
		return fmt.Errorf("train: checkpoint: %w", err)
	}
	return nil
}

func (t *trainer) restorePlace(a *artifact.Reader) {
	t.at.Step = int64(a.Int("step", 0, many))
	t.at.Stage = a.Int("stage", 0, len(t.plan)-1)
	if a.Err() != nil {
		return
	}
	t.at.StageStep = int64(a.Int("step of stage", 0, int(t.plan[t.at.Stage])))
	t.at.Epoch = a.Int("epoch", 0, many)
	t.at.Seen = a.Int("instances", 0, len(t.instances)-1)
	t.at.epochsWithoutBest = a.Int("epochs without a better score", 0, many)
	t.at.epochSteps = int64(a.Int("steps of epoch", 0, many))
	t.at.top, t.at.loss, t.at.epochLoss = a.F64(), a.F64(), a.F64()
	entries(a, "points", func(step int64, level int, v float64) {
		t.at.curve = append(t.at.curve, Point{step, level, v})
	})
	entries(a, "scores", func(step int64, level int, v float64) {
		t.at.scores = append(t.at.scores, Score{step, level, v})
	})
	entries(a, "epochs", func(step int64, level int, v float64) {
		t.at.epochs = append(t.at.epochs, Epoch{step, level, v})
	})
}

// entries reads a list of the history.
func entries(a *artifact.Reader, name string, add func(step int64, level int, value float64)) {
	const maxLevel = 1 << 16
	for range a.Int(name, 0, maxHistory) {
		step, level, value := a.Int("step", 0, many), a.Int("level", 0, maxLevel)-1, a.F64()
		if a.Err() != nil {
			return
		}
		add(int64(step), level, value)
	}
}

// readInto reads an array of exactly len(to) numbers.
func readInto(a *artifact.Reader, to []float32) {
	if copy(to, a.Float32s("weights", len(to))) != len(to) {
		a.Fail("an array is too short")
	}
}

// fingerprint hashes what a run is: its options, instances and objective.
func (t *trainer) fingerprint() uint64 {
	h := fnv.New64a()
	o := t.o
	fmt.Fprintf(h,
		"dim=%d stages=%d epochs=%v steps=%v batch=%d rate=%v warmup=%v patience=%d seed=%d stream=%d instances=%v\n",
		t.net.Dim(), o.Stages, o.Epochs, o.Steps, o.Batch, o.Rate, o.Warmup, o.Patience, o.Seed, o.Stream, t.instances)
	t.objective.Describe(h)
	return h.Sum64()
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
