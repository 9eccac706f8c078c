// Command xrlinear trains XR-Linear on the split that pecos_stage.py prepared, and prints what the
// training took and how well the model predicts as JSON. It is the Go half of make bench-xrlinear.
// compare.py runs it and PECOS, the other half.
package main

import (
	"context"
	"flag"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"gonum.org/v1/gonum/blas/blas32"

	"giantstream/cmd/bench/internal/stage"
	"giantstream/featurize/labeltree"
	"giantstream/featurize/sparse"
	"giantstream/train/numeric/blas"
	"giantstream/train/objectives/xrlinear"
)

// levels of the tree that both sides use; its leaves hold some 60 labels.
var levels = []int{64, 1024}

type bench struct {
	work, profile string
	options       xrlinear.Options
}

func main() {
	var b bench
	name := flag.String("stage", "run", "tree or run")
	threads := flag.Int("threads", 2, "number of threads")
	flag.StringVar(&b.work, "work", "", "folder of the split")
	flag.StringVar(&b.profile, "profile", "", "file for a CPU profile of the training")
	flag.IntVar(&b.options.Matched, "matched", 0, "clusters of matcher-aware negatives")
	flag.Float64Var(&b.options.Epsilon, "epsilon", 0, "tolerance")
	flag.Parse()
	runtime.GOMAXPROCS(*threads)
	blas32.Use(blas.New())
	run := b.run
	if *name == "tree" {
		run = b.tree
	}
	stage.Exit("xrlinear", run())
}

// tree clusters the labels by the training rows and writes the cluster of every label, one file per
// level.
func (b *bench) tree() error {
	x, y, err := stage.ReadProblem(b.work, ".train")
	if err != nil {
		return err
	}
	t, err := stage.SketchTree(x, y, 256, labeltree.Options{Levels: levels, Seed: 1})
	for l := 0; err == nil && l < t.Levels(); l++ {
		err = stage.WriteClusters(b.treeFile(l), t, l)
	}
	return err
}

func (b *bench) treeFile(level int) string {
	return filepath.Join(b.work, fmt.Sprintf("tree.%d", level))
}

// fileTree is the tree that the stage "tree" wrote: the cluster of every label, by level.
type fileTree [][]int32

func (f fileTree) Levels() int                { return len(f) }
func (f fileTree) Labels() int                { return len(f[0]) }
func (f fileTree) Clusters(level int) int     { return levels[level] }
func (f fileTree) Cluster(level, l int) int32 { return f[level][l] }

// report is what compare.py reads: seconds of training, and milliseconds per query.
type report struct {
	stage.Took
	Precision [3]float64 `json:"precision"` // at 1, 3 and 5
	Batch     float64    `json:"batch_ms"`  // all queries at once, on one thread
	Single    float64    `json:"single_ms"` // the median
	Weights   int        `json:"weights"`
}

func (b *bench) run() error {
	x, y, err := stage.ReadProblem(b.work, ".train")
	if err != nil {
		return err
	}
	var t fileTree
	for l := range levels {
		clusters, err := stage.ReadArray[int32](b.treeFile(l))
		if err != nil {
			return err
		}
		t = append(t, clusters)
	}
	var m *xrlinear.Model
	var r report
	r.Took, err = stage.Measure(func() error {
		return stage.Profile(b.profile, func() (err error) {
			m, err = xrlinear.Train(context.Background(), x, y, t, b.options, nil)
			return err
		})
	})
	if err != nil {
		return err
	}
	r.Weights = m.Weights()
	if x, y, err = stage.ReadProblem(b.work, ".test"); err != nil {
		return err
	}
	r.query(m, x, y)
	return stage.Print(r, nil)
}

// query predicts the labels of the rows of x, one by one and all at once.
func (r *report) query(m *xrlinear.Model, x, y *sparse.Matrix) {
	beam := xrlinear.Beam{Width: 10, Top: 5}
	q := m.NewQuery()
	times := make([]float64, x.Rows)
	var best []xrlinear.Prediction
	for i := range x.Rows {
		from := time.Now()
		best = m.Predict(q, x.Row(i), beam, best[:0])
		times[i] = time.Since(from).Seconds() * 1e3
	}
	slices.Sort(times)
	r.Single = times[len(times)/2]
	from := time.Now()
	all := m.PredictAll(x, beam, 1)
	r.Batch = time.Since(from).Seconds() * 1e3 / float64(x.Rows)
	for i, best := range all {
		for rank, p := range best {
			if _, hit := slices.BinarySearch(y.Row(i).Index, p.Label); !hit {
				continue
			}
			for k, n := range []int{1, 3, 5} {
				if rank < n {
					r.Precision[k] += 1 / float64(n) / float64(x.Rows)
				}
			}
		}
	}
}
