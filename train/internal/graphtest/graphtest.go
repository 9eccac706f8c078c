// Package graphtest has what tests of training share: a small graph with a known structure, the
// real graphs of the shared data folder, a simple vectorizer, and a measure of how far embeddings
// separate classes.
package graphtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"giantstream/featurize/sparse"
	"giantstream/internal/graphdir"
	"giantstream/internal/graphdir/graphdirtest"
	"giantstream/train"
	"giantstream/train/numeric"
)

// Topics makes a graph of n nodes in the given number of topics, node i in topic i mod topics. Each
// text has a few words of its topic among words without meaning. A topic has two dialects that
// share no word, and a text uses one of them. A node is linked to about degree others, nine in ten
// of them of its own topic, in either dialect: only the links reveal that the two dialects have one
// topic. The class is the topic.
func Topics(n, topics, degree int, seed uint64) *train.Graph {
	g := &train.Graph{}
	var edges [][2]int32
	for i := range n {
		r := numeric.NewRand(seed, uint64(i))
		topic := i % topics
		var text []string
		for range 4 {
			text = append(text, word(topic, i/topics%2, r.IntN(12)))
		}
		for range 8 {
			text = append(text, fmt.Sprintf("filler%d", r.IntN(60)))
		}
		g.IDs = append(g.IDs, fmt.Sprintf("node%05d", i))
		g.Texts = append(g.Texts, strings.Join(text, " "))
		g.Classes = append(g.Classes, fmt.Sprintf("topic %d", topic))
		for range degree / 2 {
			j := r.IntN(n)
			if r.IntN(10) > 0 {
				j = j - j%topics + topic
			}
			if j < n && j != i {
				edges = append(edges, [2]int32{int32(i), int32(j)})
			}
		}
	}
	g.Neighbours = graphdir.Undirected(n, edges)
	return g
}

// Keys are keys of n nodes.
func Keys(n int) []uint64 {
	keys := make([]uint64, n)
	for i := range keys {
		keys[i] = uint64(i)
	}
	return keys
}

// word makes up a word with letters that reveal nothing of its topic.
func word(topic, dialect, k int) string {
	r := numeric.NewRand(1, uint64(topic), uint64(dialect), uint64(k))
	letters := make([]byte, 7)
	for i := range letters {
		letters[i] = byte('a' + r.IntN(26))
	}
	return string(letters)
}

// Shared loads a graph of the shared data folder, undirected, and skips the test where the folder
// is missing.
func Shared(t testing.TB, name string) *train.Graph {
	t.Helper()
	return (*train.Graph)(graphdirtest.Load(t, name))
}

// Words is a vectorizer that hashes words to this many features and counts them.
type Words int

// Dim returns the number of features.
func (n Words) Dim() int { return int(n) }

// Feature returns the feature of a word.
func (n Words) Feature(word string) int32 { return int32(numeric.HashString(word) % uint64(n)) }

// Matrix returns the features of texts, a row each.
func (n Words) Matrix(texts ...string) *sparse.Matrix {
	m := &sparse.Matrix{Cols: n.Dim(), Start: []int64{0}}
	for _, t := range texts {
		m.Append(n.Transform(t, sparse.Vector{}))
	}
	return m
}

// Transform implements train.Vectorizer.
func (n Words) Transform(text string, dst sparse.Vector) sparse.Vector {
	dst.Index, dst.Value = dst.Index[:0], dst.Value[:0]
	for w := range strings.FieldsSeq(text) {
		f := n.Feature(w)
		at, known := slices.BinarySearch(dst.Index, f)
		if !known {
			dst.Index, dst.Value = slices.Insert(dst.Index, at, f), slices.Insert(dst.Value, at, 0)
		}
		dst.Value[at]++
	}
	return dst
}

// ClassSeparation returns the mean cosine of two nodes of one class, minus the mean cosine of two nodes of
// different classes. z holds the nodes' embeddings, of length 1 and dimension dim.
func ClassSeparation(classes []string, z []float32, dim int) float64 {
	var sum, pairs [2]float64
	for i, class := range classes {
		for j := range i {
			same := 0
			if classes[j] == class {
				same = 1
			}
			sum[same] += float64(numeric.Dot(z[i*dim:(i+1)*dim], z[j*dim:(j+1)*dim]))
			pairs[same]++
		}
	}
	return sum[1]/pairs[1] - sum[0]/pairs[0]
}
