package stage

import (
	"encoding/binary"
	"os"
	"path/filepath"

	"giantstream/featurize/labeltree"
	"giantstream/featurize/pifa"
	"giantstream/featurize/projection"
	"giantstream/featurize/sparse"
	"giantstream/featurize/tfidf"
)

// ReadMatrix reads a matrix that save of cmd/bench/featurize/pecos_stage.py wrote.
func ReadMatrix(work, name string) (*sparse.Matrix, error) {
	at := filepath.Join(work, name)
	shape, err := ReadArray[int64](at + ".shape")
	if err != nil {
		return nil, err
	}
	m := &sparse.Matrix{Rows: int(shape[0]), Cols: int(shape[1])}
	if m.Start, err = ReadArray[int64](at + ".start"); err != nil {
		return nil, err
	}
	if m.Index, err = ReadArray[int32](at + ".index"); err != nil {
		return nil, err
	}
	m.Value, err = ReadArray[float32](at + ".value")
	return m, err
}

// ReadProblem reads the matrices x and y whose names end in part: the TF-IDF of the texts and their
// labels.
func ReadProblem(work, part string) (x, y *sparse.Matrix, err error) {
	if x, err = ReadMatrix(work, "x"+part); err != nil {
		return nil, nil, err
	}
	y, err = ReadMatrix(work, "y"+part)
	return x, y, err
}

// ReadArray reads a file of little-endian numbers.
func ReadArray[T int32 | int64 | float32](path string) ([]T, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var one T
	v := make([]T, len(b)/binary.Size(one))
	_, err = binary.Decode(b, binary.LittleEndian, v)
	return v, err
}

// FitTFIDF fits a vectorizer to the texts.
func FitTFIDF(texts []string, o tfidf.Options, threads int) (*tfidf.Model, error) {
	f, err := tfidf.NewFitter(o)
	if err != nil {
		return nil, err
	}
	f.AddAll(texts, threads)
	return f.Fit()
}

// SketchTree clusters the labels y of the texts x by their PIFA, sketched in dim dimensions. The
// values of y do not count. Seed and workers of the tree are also those of the projection.
func SketchTree(x, y *sparse.Matrix, dim int, o labeltree.Options) (*labeltree.Tree, error) {
	p, err := projection.Fit(x, dim, projection.Options{Seed: o.Seed, Workers: o.Workers})
	if err != nil {
		return nil, err
	}
	ones := *y
	ones.Value = nil
	s, err := pifa.FromGraph(p.ApplyAll(x, o.Workers), p.Dim(), &ones, pifa.InverseSqrtDegree, o.Workers)
	if err != nil {
		return nil, err
	}
	features, err := labeltree.Dense(s.Normalized(), p.Dim())
	if err != nil {
		return nil, err
	}
	return labeltree.Build(features, o)
}

// WriteClusters writes the cluster of every label at a level, as int32.
func WriteClusters(path string, t *labeltree.Tree, level int) error {
	var b []byte
	for label := range t.Labels() {
		b = binary.LittleEndian.AppendUint32(b, uint32(t.Cluster(level, label)))
	}
	return os.WriteFile(path, b, 0o644)
}
