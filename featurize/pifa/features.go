package pifa

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"giantstream/featurize/projection"
	"giantstream/featurize/sparse"
)

// Kind names what the label tree clusters: PIFA, or one of the ablations of
// the GIANT paper.
type Kind string

// The kinds of label features.
const (
	// PIFA: neighbours and their texts.
	PIFA Kind = "pifa"
	// PIFAIdentity: neighbours alone, each with a feature of its own.
	PIFAIdentity Kind = "pifa-identity"
	// Text: the label's own text, no neighbours.
	Text Kind = "text"
	// RandomFeatures: neither; a random tree.
	RandomFeatures Kind = "random"
)

// kinds are all kinds, in the order that messages name them.
var kinds = [...]Kind{PIFA, PIFAIdentity, Text, RandomFeatures}

// KindNames returns the names of all kinds.
func KindNames() (names []string) {
	for _, k := range kinds {
		names = append(names, string(k))
	}
	return names
}

// ParseKind returns the kind of label features of that name.
func ParseKind(name string) (Kind, error) {
	if !slices.Contains(kinds[:], Kind(name)) {
		return "", fmt.Errorf("pifa: unknown label features %q; use one of: %s", name, strings.Join(KindNames(), ", "))
	}
	return Kind(name), nil
}

// Source is what label features are made from.
type Source struct {
	Projected []float32 // n × Dim: the projected texts of the nodes
	Dim       int
	// Labels are the labels of the instances; here both are the n nodes.
	Labels    *sparse.Matrix
	Weighting Weighting
	Seed      uint64
	Workers   int
}

// LabelFeatures returns the features of the labels, n × Dim row-major, with
// rows of length 1. Labels without instances get a zero row, whatever the kind.
func LabelFeatures(kind Kind, src Source) ([]float32, error) {
	y := src.Labels
	if y.Rows != y.Cols {
		return nil, fmt.Errorf("pifa: %d instances and %d labels; label features need nodes that are both",
			y.Rows, y.Cols)
	}
	if _, err := ParseKind(string(kind)); err != nil {
		return nil, err
	}
	input := src.Projected
	if kind == PIFAIdentity {
		p, err := projection.Random(max(1, y.Rows), src.Dim, src.Seed)
		if err != nil {
			return nil, fmt.Errorf("pifa: %w", err)
		}
		input = p.ApplyAll(identity(y.Rows), src.Workers)
	}
	sums, err := FromGraph(input, src.Dim, y, src.Weighting, src.Workers)
	if err != nil {
		return nil, err
	}
	switch kind {
	case Text:
		copy(sums.sums, src.Projected)
	case RandomFeatures:
		r := rand.New(rand.NewPCG(src.Seed, 'R'))
		for i := range sums.sums {
			sums.sums[i] = float32(r.NormFloat64())
		}
	}
	for l, n := range sums.count {
		if n == 0 {
			clear(sums.Sum(l))
		}
	}
	return sums.Normalized(), nil
}

func identity(n int) *sparse.Matrix {
	m := &sparse.Matrix{Rows: n, Cols: n, Start: make([]int64, n+1), Index: make([]int32, n), Value: make([]float32, n)}
	for i := range n {
		m.Start[i+1], m.Index[i], m.Value[i] = int64(i+1), int32(i), 1
	}
	return m
}
