// Command bert encodes texts with a BERT model, or trains the model on them, and prints speed and
// memory as JSON. It is the Go half of make bench-bert and of make bench-encode, whose compare.py run it beside
// other programs.
package main

import (
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/blas/blas32"

	"giantstream/cmd/bench/internal/stage"
	"giantstream/train/encoders/bert"
	"giantstream/train/encoders/bert/compute"
	"giantstream/train/encoders/bert/compute/cpu"
	"giantstream/train/encoders/bert/wordpiece"
	"giantstream/train/numeric/blas"
)

type bench struct {
	mode, model, texts, profile string
	precision, embeddings       string
	batch, length, threads      int
	seconds                     float64
}

func main() {
	var b bench
	flag.StringVar(&b.mode, "mode", "encode", "encode or train")
	flag.StringVar(&b.model, "model", "", "directory of the model")
	flag.StringVar(&b.texts, "texts", "", "file of texts, one a line")
	flag.StringVar(&b.profile, "profile", "", "file for a CPU profile")
	flag.StringVar(&b.precision, "precision", "float32", "how encoding multiplies: float32 or int8")
	flag.StringVar(&b.embeddings, "embeddings", "", "file for the embeddings, in float32; nothing is timed")
	flag.IntVar(&b.batch, "batch", 32, "texts of a training step")
	flag.IntVar(&b.length, "length", 128, "tokens that are kept of a text")
	flag.IntVar(&b.threads, "threads", 2, "number of threads")
	flag.Float64Var(&b.seconds, "seconds", 5, "how long to measure, at least")
	flag.Parse()
	runtime.GOMAXPROCS(b.threads)
	blas32.Use(blas.New())
	stage.Exit("bert", stage.Print(b.run()))
}

// report is what compare.py reads.
type report struct {
	Tokens  int     `json:"tokens"`
	Seconds float64 `json:"seconds"`
	CPU     float64 `json:"cpu"`      // seconds of all cores
	PeakMiB float64 `json:"peak_mib"` // of the process, resident
}

func (b *bench) run() (r report, err error) {
	data, err := os.ReadFile(b.texts)
	if err != nil {
		return r, err
	}
	if len(data) == 0 {
		return r, fmt.Errorf("%s holds no texts", b.texts)
	}
	texts := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	dir := os.DirFS(b.model)
	t, err := wordpiece.Load(dir)
	if err != nil {
		return r, err
	}
	var step func(texts []string) error
	switch b.mode {
	case "encode":
		var e *bert.Encoder
		e, err = bert.Open(dir, cpu.New(), bert.Options{Pooling: compute.Mean, MaxTokens: b.length,
			Precision: bert.Precision(b.precision)})
		if err == nil && b.embeddings != "" {
			return r, write(e, texts, b.embeddings)
		}
		step = func(texts []string) error { return e.Encode(texts, make([]float32, len(texts)*e.Dim())) }
		b.batch = len(texts) // the encoder packs its batches itself
	case "train":
		var m *bert.Model
		if m, err = bert.Load(dir, cpu.New()); err == nil {
			step, err = training(m, t, b.length)
		}
	default:
		err = fmt.Errorf("unknown mode %q", b.mode)
	}
	if err != nil {
		return r, err
	}
	return b.measure(texts, t, step)
}

// write encodes texts into a file.
func write(e *bert.Encoder, texts []string, path string) error {
	out := make([]float32, len(texts)*e.Dim())
	if err := e.Encode(texts, out); err != nil {
		return err
	}
	data, err := binary.Append(nil, binary.LittleEndian, out)
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

// training is a whole step: forward, backward, clipping, AdamW. The loss is the sum of the outputs.
func training(m *bert.Model, t *wordpiece.Tokenizer, length int) (func([]string) error, error) {
	u, err := bert.NewTuner(m, t, bert.TuneOptions{Pooling: compute.Mean, MaxTokens: length})
	if err != nil {
		return nil, err
	}
	return func(texts []string) error {
		out := make([]float32, len(texts)*u.Dim())
		if err := u.Forward(texts, nil, out); err != nil {
			return err
		}
		for i := range out {
			out[i] = 1 / float32(len(texts))
		}
		if err := u.Backward(out); err != nil {
			return err
		}
		_, err := u.Update(1e-5)
		return err
	}, nil
}

// measure runs steps over the texts, again and again, until the time is up. The first step is not
// counted.
func (b *bench) measure(texts []string, t *wordpiece.Tokenizer, step func([]string) error) (r report, err error) {
	batches := slices.Collect(slices.Chunk(texts, max(1, b.batch)))
	if err := step(batches[0][:min(len(batches[0]), 64)]); err != nil {
		return r, err
	}
	tokens := make([]int, len(batches))
	for i, batch := range batches {
		for _, text := range batch {
			tokens[i] += len(t.Encode(text, b.length, nil))
		}
	}
	err = stage.Profile(b.profile, func() error {
		began, before := time.Now(), stage.CPUSeconds()
		for i := 0; time.Since(began).Seconds() < b.seconds; i++ {
			if err := step(batches[i%len(batches)]); err != nil {
				return err
			}
			r.Tokens += tokens[i%len(batches)]
		}
		r.Seconds, r.CPU = time.Since(began).Seconds(), stage.CPUSeconds()-before
		return nil
	})
	if err != nil {
		return r, err
	}
	r.PeakMiB, err = stage.PeakMiB("self")
	return r, err
}
