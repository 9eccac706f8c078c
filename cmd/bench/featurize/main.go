// Command featurize runs one stage of giantstream's featurization and prints
// what it took as JSON. It is the Go half of make bench-featurize, which
// runs the same stages of PECOS beside it: see compare.py.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"

	"gonum.org/v1/gonum/blas/blas32"

	"giantstream/cmd/bench/internal/stage"
	"giantstream/featurize/labeltree"
	"giantstream/featurize/pifa"
	"giantstream/featurize/projection"
	"giantstream/featurize/sparse"
	"giantstream/featurize/tfidf"
	"giantstream/train/blas"
)

const (
	leaves    = 1024
	sketchDim = 256
)

type bench struct {
	data, work, leafFile string
	threads              int
	seed                 uint64
}

func main() {
	blas32.Use(blas.New())
	var b bench
	name := flag.String("stage", "", "fit, transform, pifa, pifa-tree or exact-tree")
	flag.StringVar(&b.data, "data", "", "folder of nodes.jsonl.gz")
	flag.StringVar(&b.work, "work", "", "folder of the matrices that pecos_stage.py prepared")
	flag.StringVar(&b.leafFile, "leaves", "", "file for the leaf of every label")
	flag.IntVar(&b.threads, "threads", 1, "number of threads")
	flag.Uint64Var(&b.seed, "seed", 1, "seed of the trees")
	flag.Parse()
	stages := map[string]func() (report, error){
		"fit": b.fit, "transform": b.transform, "pifa": b.pifa, "pifa-tree": b.pifaTree, "exact-tree": b.exactTree,
	}
	run, ok := stages[*name]
	if !ok {
		fmt.Fprintf(os.Stderr, "unknown stage %q\n", *name)
		os.Exit(2)
	}
	runtime.GOMAXPROCS(b.threads)
	r, err := run()
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(r)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// report is what compare.py reads: what the stage took, and what it made.
type report struct {
	stage.Took
	Features int   `json:"features,omitempty"`
	NonZeros int64 `json:"nonzeros,omitempty"`
}

func (b *bench) fit() (report, error) {
	texts, err := readTexts(b.data)
	if err != nil {
		return report{}, err
	}
	var m *tfidf.Model
	took, err := stage.Measure(func() error {
		m, err = fit(texts, b.threads)
		return err
	})
	if err != nil {
		return report{}, err
	}
	return report{Took: took, Features: m.Dim()}, nil
}

func fit(texts []string, threads int) (*tfidf.Model, error) {
	f, err := tfidf.NewFitter(tfidf.PECOSOptions())
	if err != nil {
		return nil, err
	}
	f.AddAll(texts, threads)
	return f.Fit()
}

func (b *bench) transform() (report, error) {
	texts, err := readTexts(b.data)
	if err != nil {
		return report{}, err
	}
	m, err := fit(texts, b.threads)
	if err != nil {
		return report{}, err
	}
	var x *sparse.Matrix
	took, err := stage.Measure(func() error {
		x = m.TransformAll(texts, b.threads)
		return nil
	})
	return report{Took: took, NonZeros: x.NNZ()}, err
}

func (b *bench) pifa() (report, error) {
	x, y, err := b.readGraph()
	if err != nil {
		return report{}, err
	}
	var z *sparse.Matrix
	took, err := stage.Measure(func() error {
		z = pifa.Exact(x, y, pifa.InverseSqrtDegree, b.threads)
		return nil
	})
	return report{Took: took, NonZeros: z.NNZ()}, err
}

// pifaTree goes from TF-IDF to the tree through a fitted sketch.
func (b *bench) pifaTree() (report, error) {
	x, y, err := b.readGraph()
	if err != nil {
		return report{}, err
	}
	var tree *labeltree.Tree
	took, err := stage.Measure(func() error {
		p, err := projection.Fit(x, sketchDim, projection.Options{Seed: b.seed, Workers: b.threads})
		if err != nil {
			return err
		}
		s, err := pifa.FromGraph(p.ApplyAll(x, b.threads), p.Dim(), y, pifa.InverseSqrtDegree, b.threads)
		if err != nil {
			return err
		}
		features, err := labeltree.Dense(s.Normalized(), p.Dim())
		if err != nil {
			return err
		}
		tree, err = b.build(features)
		return err
	})
	if err != nil {
		return report{}, err
	}
	return report{Took: took}, writeLeaves(b.leafFile, tree)
}

func (b *bench) exactTree() (report, error) {
	z, err := stage.ReadMatrix(b.work, "z")
	if err != nil {
		return report{}, err
	}
	var tree *labeltree.Tree
	took, err := stage.Measure(func() error {
		tree, err = b.build(labeltree.Sparse(z))
		return err
	})
	if err != nil {
		return report{}, err
	}
	return report{Took: took}, writeLeaves(b.leafFile, tree)
}

func (b *bench) build(x labeltree.Features) (*labeltree.Tree, error) {
	return labeltree.Build(x, labeltree.Options{Levels: []int{leaves}, Seed: b.seed, Workers: b.threads})
}

func (b *bench) readGraph() (x, y *sparse.Matrix, err error) {
	if x, err = stage.ReadMatrix(b.work, "x"); err != nil {
		return nil, nil, err
	}
	if y, err = stage.ReadMatrix(b.work, "y"); err != nil {
		return nil, nil, err
	}
	y.Value = nil // all 1
	return x, y, nil
}
