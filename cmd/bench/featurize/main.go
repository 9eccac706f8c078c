// Command featurize runs one stage of giantstream's featurization and prints what it took as JSON.
// It is the Go half of make bench-featurize. compare.py runs it and PECOS, the other half.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"gonum.org/v1/gonum/blas/blas32"

	"giantstream/cmd/bench/internal/stage"
	"giantstream/featurize/labeltree"
	"giantstream/featurize/pifa"
	"giantstream/featurize/tfidf"
	"giantstream/internal/graphdir"
	"giantstream/train/numeric/blas"
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

// report is what compare.py reads: what the stage took, and the size of its result.
type report struct {
	stage.Took
	Features int   `json:"features,omitempty"`
	NonZeros int64 `json:"nonzeros,omitempty"`
	tree     *labeltree.Tree
}

// work is the part of a stage that is measured, after its inputs have been read.
type work func(*report) error

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
	prepare, ok := map[string]func() (work, error){
		"fit": b.fit, "transform": b.transform, "pifa": b.pifa, "pifa-tree": b.pifaTree, "exact-tree": b.exactTree,
	}[*name]
	if !ok {
		fmt.Fprintf(os.Stderr, "unknown stage %q\n", *name)
		os.Exit(2)
	}
	runtime.GOMAXPROCS(b.threads)
	stage.Exit("featurize", stage.Print(b.run(prepare)))
}

func (b *bench) run(prepare func() (work, error)) (r report, err error) {
	f, err := prepare()
	if err != nil {
		return r, err
	}
	if r.Took, err = stage.Measure(func() error { return f(&r) }); err == nil && r.tree != nil {
		err = stage.WriteClusters(b.leafFile, r.tree, 0)
	}
	return r, err
}

func (b *bench) fit() (work, error) {
	texts, err := readTexts(b.data)
	return func(r *report) error {
		m, err := stage.FitTFIDF(texts, tfidf.PECOSOptions(), b.threads)
		if err == nil {
			r.Features = m.Dim()
		}
		return err
	}, err
}

func (b *bench) transform() (work, error) {
	texts, err := readTexts(b.data)
	if err != nil {
		return nil, err
	}
	m, err := stage.FitTFIDF(texts, tfidf.PECOSOptions(), b.threads)
	return func(r *report) error {
		r.NonZeros = m.TransformAll(texts, b.threads).NNZ()
		return nil
	}, err
}

func (b *bench) pifa() (work, error) {
	x, y, err := stage.ReadProblem(b.work, "")
	if err != nil {
		return nil, err
	}
	y.Value = nil // all 1
	return func(r *report) error {
		r.NonZeros = pifa.Exact(x, y, pifa.InverseSqrtDegree, b.threads).NNZ()
		return nil
	}, nil
}

// pifaTree goes from TF-IDF to the tree through a fitted sketch.
func (b *bench) pifaTree() (work, error) {
	x, y, err := stage.ReadProblem(b.work, "")
	if err != nil {
		return nil, err
	}
	y.Value = nil // all 1; its memory must not count
	return func(r *report) (err error) {
		r.tree, err = stage.SketchTree(x, y, sketchDim, b.treeOptions())
		return err
	}, nil
}

func (b *bench) exactTree() (work, error) {
	z, err := stage.ReadMatrix(b.work, "z")
	return func(r *report) (err error) {
		r.tree, err = labeltree.Build(labeltree.Sparse(z), b.treeOptions())
		return err
	}, err
}

func (b *bench) treeOptions() labeltree.Options {
	return labeltree.Options{Levels: []int{leaves}, Seed: b.seed, Workers: b.threads}
}

func readTexts(data string) (texts []string, err error) {
	for node, err := range graphdir.Lines[struct{ Text string }](filepath.Join(data, "nodes.jsonl.gz")) {
		if err != nil {
			return nil, err
		}
		texts = append(texts, node.Text)
	}
	return texts, nil
}
