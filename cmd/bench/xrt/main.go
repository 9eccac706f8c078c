// Command xrt fine-tunes a BERT-family model on the neighbourhoods of a graph. Before and after, it
// measures how well the embeddings predict hidden links and, where nodes have classes, the classes:
//
//	go run ./cmd/bench/xrt -model "$GIANTSTREAM_MINILM" -data ../shared/data/amazon-products
//
// One line per score on held-out instances goes to standard error, the figures as JSON to standard
// output.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"gonum.org/v1/gonum/blas/blas32"

	"giantstream/cmd/bench/internal/stage"
	"giantstream/internal/graphdir"
	"giantstream/train"
	"giantstream/train/encoders/bert"
	"giantstream/train/encoders/bert/compute"
	"giantstream/train/encoders/bert/compute/cpu"
	"giantstream/train/encoders/bert/wordpiece"
	"giantstream/train/generation/eval"
	"giantstream/train/numeric/blas"
	"giantstream/train/objectives/trainer"
	"giantstream/train/objectives/xmc"
	"giantstream/train/objectives/xrt"
)

type settings struct {
	data, model string
	holdout     float64
	seed        uint64
	tune        bert.TuneOptions
	task        taskOptions
	train       xrt.Options
	quick       bool
	export      string
	judge       string
}

func main() {
	var s settings
	var coarse, steps bool
	flag.StringVar(&s.data, "data", "../shared/data/amazon-products", "folder of the graph")
	flag.StringVar(&s.model, "model", os.Getenv("GIANTSTREAM_MINILM"), "folder of the model")
	flag.Float64Var(&s.holdout, "holdout", 0.1, "share of edges to hide")
	flag.Uint64Var(&s.seed, "seed", 1, "seed of split and training")
	flag.IntVar(&s.tune.MaxTokens, "tokens", 64, "tokens of a text")
	flag.Float64Var(&s.tune.Dropout, "dropout", 0, "share of the hidden states and of attention to drop")
	flag.Float64Var(&s.tune.DropTokens, "drop-tokens", 0, "share of the tokens of a text to leave out of a step")
	flag.BoolVar(&s.task.labels, "labels", true,
		"predict the labels themselves, too, below the tree's leaves, as a generation does")
	flag.Float64Var(&s.train.Epochs, "epochs", 0, "passes over the instances")
	flag.IntVar(&s.train.Batch, "batch", 0, "instances per step")
	flag.Float64Var(&s.train.Rate, "rate", 0, "learning rate of the network")
	flag.Float64Var(&s.train.HeadRate, "head-rate", 0, "learning rate of the heads")
	loss := flag.String("loss", "softmax", "softmax, hinge or cross-entropy")
	scale := flag.Float64("scale", 0, "factor of scores; 0 is the default, 1")
	start := flag.String("start", "ridge", "start of the heads: ridge, inherit, centroid, random or linear")
	flag.IntVar(&s.train.Sample, "sample", 0, "instances that the heads start from")
	matched := flag.Int("matched", 0, "clusters whose children are candidates")
	flag.IntVar(&s.train.Patience, "patience", 0, "epochs without a better score after which training ends")
	flag.Float64Var(&s.train.Warmup, "warmup", 0, "share of the steps over which the rates rise")
	flag.Float64Var(&s.tune.WeightDecay, "decay", 0, "weight decay of the network")
	flag.IntVar(&s.task.pairs, "pairs", eval.PairsEach, "neighbours of a held-out instance to judge by")
	flag.BoolVar(&s.train.Raw, "raw", false, "heads see pooled vectors, not their directions")
	uniform := flag.Bool("uniform", false, "instances weigh the same")
	flag.BoolVar(&coarse, "coarse", false, "level by level, not all at once")
	flag.BoolVar(&s.quick, "quick", false, "do not measure the plain model")
	flag.StringVar(&s.export, "export", "", "only write the problem to this folder, for another program")
	flag.StringVar(&s.judge, "judge", "", "only measure the embeddings in this file")
	flag.BoolVar(&steps, "curve", false, "print the loss curve as it grows")
	flag.Parse()
	if *uniform {
		s.train.Weights = xrt.Uniform
	}
	if *scale != 0 {
		s.train.Heads.Scale = float32(*scale)
	}
	s.train.Heads.Matched = *matched
	if coarse {
		s.train.Schedule = xrt.CoarseToFine
	}
	var known bool
	losses := map[string]xmc.Loss{"softmax": xmc.Softmax, "hinge": xmc.SquaredHinge, "cross-entropy": xmc.CrossEntropy}
	if s.train.Heads.Loss, known = losses[*loss]; !known {
		stage.Exit("xrt", fmt.Errorf("unknown loss %q", *loss))
	}
	starts := map[string]xrt.Start{"ridge": xrt.Ridge, "inherit": xrt.Inherit, "random": xrt.Random,
		"linear": xrt.Linear, "centroid": xrt.Centroid}
	if s.train.Start, known = starts[*start]; !known {
		stage.Exit("xrt", fmt.Errorf("unknown start %q", *start))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	stage.Exit("xrt", run(ctx, s, steps))
}

// figures are the quality of an encoder's embeddings.
type figures struct {
	Links  eval.LinkMetrics    `json:"links"`
	Probes []eval.ProbeMetrics `json:"probes,omitempty"` // on 10 % and 60 % of the nodes
}

type outcome struct {
	Plain, Trained figures // the model as it came, and fine-tuned
	Training       trainer.Report
	Seconds, CPU   float64 // of training
	Tokens         int
}

func run(ctx context.Context, s settings, curve bool) error {
	blas32.Use(blas.New())
	g, err := graphdir.Read(s.data)
	if err != nil {
		return err
	}
	known, hidden := eval.Split((*train.Graph)(g), s.holdout, s.seed)
	if s.judge != "" {
		return stage.Print(judgeFile(s.judge, known, hidden, s.seed))
	}
	tuner, err := open(s)
	if err != nil {
		return err
	}
	t, err := newTask(known, s.task, s.seed)
	if err != nil {
		return err
	}
	if s.export != "" {
		return export(s.export, known, t)
	}
	o := outcome{Tokens: s.tune.MaxTokens}
	if !s.quick {
		if o.Plain, err = measure(tuner.Encoder(), known, hidden, s.seed); err != nil {
			return err
		}
	}
	fmt.Fprintf(os.Stderr, "%d instances; plain: %+v\n", len(t.set.Instances), o.Plain.Links)
	s.train.Seed = s.seed
	from, used := time.Now(), stage.CPUSeconds()
	validate := t.pairs.Validate(tuner.Dim())
	hooks := trainer.Hooks{
		Validate: func(ctx context.Context, embed trainer.Embed) (float64, error) {
			score, err := validate(ctx, embed)
			fmt.Fprintf(os.Stderr, "%6.0f s (CPU %.0f s): held-out AUC %.4f\n",
				time.Since(from).Seconds(), stage.CPUSeconds()-used, score)
			return score, err
		},
		Point: func(p trainer.Point, _ int64) {
			if curve {
				fmt.Fprintf(os.Stderr, "%6.0f s: step %d, level %d, loss %.4f\n",
					time.Since(from).Seconds(), p.Step, p.Level, p.Loss)
			}
		},
	}
	net := bert.NewNetwork(tuner, func(i int) (string, error) { return known.Texts[i], nil })
	r, err := xrt.Train(ctx, net, t.set, s.train, hooks, nil)
	if err != nil {
		return err
	}
	o.Seconds, o.CPU, o.Training = time.Since(from).Seconds(), stage.CPUSeconds()-used, r.Report
	if o.Trained, err = measure(tuner.Encoder(), known, hidden, s.seed); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "trained: %+v\n", o.Trained.Links)
	return stage.Print(o, nil)
}

func open(s settings) (*bert.Tuner, error) {
	s.tune.Pooling = compute.Mean
	if s.model == "" {
		return nil, errors.New("no model: use -model or GIANTSTREAM_MINILM (docs/format/bert.md says how to get one)")
	}
	dir := os.DirFS(s.model)
	tokenizer, err := wordpiece.Load(dir)
	if err != nil {
		return nil, err
	}
	model, err := bert.Load(dir, cpu.New())
	if err != nil {
		return nil, err
	}
	return bert.NewTuner(model, tokenizer, s.tune)
}

func measure(e train.Encoder, known *train.Graph, hidden []eval.Edge, seed uint64) (f figures, err error) {
	z := make([]float32, known.Len()*e.Dim())
	if err = e.Encode(known.Texts, z); err != nil {
		return f, err
	}
	return judged(z, e.Dim(), known, hidden, seed)
}

// judged measures embeddings of all nodes.
func judged(z []float32, dim int, known *train.Graph, hidden []eval.Edge, seed uint64) (f figures, err error) {
	if f.Links, err = eval.Links(z, dim, known, hidden, eval.LinkOptions{Seed: seed}); err != nil {
		return f, err
	}
	for _, share := range []float64{0.1, 0.6} {
		m, err := eval.Probe(z, dim, known.Classes, eval.ProbeOptions{Fraction: share, Seed: seed})
		if errors.Is(err, eval.ErrNoClasses) {
			return f, nil
		} else if err != nil {
			return f, err
		}
		f.Probes = append(f.Probes, m)
	}
	return f, nil
}
