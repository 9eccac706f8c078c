// Package graphtest makes the graphs that tests of training use: a small one
// with a known structure, and the real ones of the shared data folder.
package graphtest

import (
	"fmt"
	"strings"
	"testing"

	"giantstream/featurize/graphdir"
	"giantstream/featurize/graphdir/graphdirtest"
	"giantstream/train"
	"giantstream/train/internal/rng"
)

// Topics makes a graph of n nodes in the given number of topics, node i in
// topic i mod topics. Each text has a few words of its topic, in one of two
// dialects that share no word, among words of no meaning; a node is linked to
// about degree others, nine in ten of them of its own topic, whatever their
// dialect: only the links tell that the dialects speak of the same. The class
// is the topic.
func Topics(n, topics, degree int, seed uint64) *train.Graph {
	g := &train.Graph{}
	var edges [][2]int32
	for i := range n {
		r := rng.New(seed, uint64(i))
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

// word makes up a word whose letters tell nothing of its topic.
func word(topic, dialect, k int) string {
	r := rng.New(1, uint64(topic), uint64(dialect), uint64(k))
	letters := make([]byte, 7)
	for i := range letters {
		letters[i] = byte('a' + r.IntN(26))
	}
	return string(letters)
}

// Shared loads a graph of the shared data folder, undirected, and skips the test
// where the folder is missing.
func Shared(t testing.TB, name string) *train.Graph {
	t.Helper()
	return (*train.Graph)(graphdirtest.Load(t, name))
}
