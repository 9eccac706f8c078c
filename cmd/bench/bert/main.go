// Command bert encodes texts with a BERT model, or trains it on them, and
// prints how fast and in how much memory as JSON. It is the Go half of
// make bench-bert, which runs PyTorch beside it: see compare.py.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"syscall"
	"time"

	"gonum.org/v1/gonum/blas/blas32"

	"giantstream/train/bert"
	"giantstream/train/bert/compute"
	"giantstream/train/bert/compute/cpu"
	"giantstream/train/bert/wordpiece"
	"giantstream/train/blas"
)

type bench struct {
	mode, model, texts, profile string
	batch, length, threads      int
	seconds                     float64
}

func main() {
	var b bench
	flag.StringVar(&b.mode, "mode", "encode", "encode or train")
	flag.StringVar(&b.model, "model", "", "directory of the model")
	flag.StringVar(&b.texts, "texts", "", "file of texts, one a line")
	flag.StringVar(&b.profile, "profile", "", "file for a CPU profile")
	flag.IntVar(&b.batch, "batch", 32, "texts of a training step")
	flag.IntVar(&b.length, "length", 128, "tokens that are kept of a text")
	flag.IntVar(&b.threads, "threads", 2, "number of threads")
	flag.Float64Var(&b.seconds, "seconds", 5, "how long to measure, at least")
	flag.Parse()
	runtime.GOMAXPROCS(b.threads)
	blas32.Use(blas.New())
	r, err := b.run()
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(r)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bert:", err)
		os.Exit(1)
	}
}

// report is what compare.py reads.
type report struct {
	Tokens  int     `json:"tokens"`
	Seconds float64 `json:"seconds"`
	CPU     float64 `json:"cpu"`      // seconds of all cores
	PeakMiB float64 `json:"peak_mib"` // of the process, resident
}

func (b *bench) run() (report, error) {
	texts, err := readLines(b.texts)
	if err != nil {
		return report{}, err
	}
	dir := os.DirFS(b.model)
	t, err := wordpiece.Load(dir)
	if err != nil {
		return report{}, err
	}
	m, err := bert.Load(dir, cpu.New())
	if err != nil {
		return report{}, err
	}
	var step func(texts []string) error
	switch b.mode {
	case "encode":
		step, err = encoding(m, t, b.length)
		b.batch = len(texts) // the encoder packs its batches itself
	case "train":
		step, err = training(m, t, b.length)
	default:
		err = fmt.Errorf("unknown mode %q", b.mode)
	}
	if err != nil {
		return report{}, err
	}
	return b.measure(texts, t, step)
}

func encoding(m *bert.Model, t *wordpiece.Tokenizer, length int) (func([]string) error, error) {
	e, err := bert.New(m, t, bert.Options{Pooling: compute.Mean, MaxTokens: length})
	if err != nil {
		return nil, err
	}
	return func(texts []string) error { return e.Encode(texts, make([]float32, len(texts)*e.Dim())) }, nil
}

// training is a whole step: forward, backward, clipping, AdamW. The loss is
// the sum of what comes out.
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

// measure runs steps over the texts, again and again, until the time is up.
// The first is not counted.
func (b *bench) measure(texts []string, t *wordpiece.Tokenizer, step func([]string) error) (report, error) {
	batches := slices.Collect(slices.Chunk(texts, max(1, b.batch)))
	if len(batches) == 0 {
		return report{}, errors.New("no texts")
	}
	if err := step(batches[0][:min(len(batches[0]), 64)]); err != nil {
		return report{}, err
	}
	if b.profile != "" {
		f, err := os.Create(b.profile)
		if err != nil {
			return report{}, err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return report{}, err
		}
		defer pprof.StopCPUProfile()
	}
	var r report
	began, before := time.Now(), usage()
	for i := 0; time.Since(began).Seconds() < b.seconds; i++ {
		batch := batches[i%len(batches)]
		if err := step(batch); err != nil {
			return report{}, err
		}
		for _, text := range batch {
			r.Tokens += len(t.Encode(text, b.length, nil))
		}
	}
	after := usage()
	r.Seconds = time.Since(began).Seconds()
	r.CPU = seconds(after.Utime) + seconds(after.Stime) - seconds(before.Utime) - seconds(before.Stime)
	r.PeakMiB = float64(after.Maxrss) / 1024
	return r, nil
}

func usage() syscall.Rusage {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return syscall.Rusage{}
	}
	return u
}

func seconds(t syscall.Timeval) float64 { return time.Duration(t.Nano()).Seconds() }

func readLines(name string) ([]string, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var lines []string
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		lines = append(lines, s.Text())
	}
	return lines, s.Err()
}
