package main

import (
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"

	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	"giantstream/train/generation"
	"giantstream/train/generation/build/stages"
	"giantstream/train/generation/build/work"
	"giantstream/train/numeric"
)

// The synthetic graph: communities of nodes that share topics and links. There are as many topics however large the
// graph is, so that a projection of a fixed dimension can tell them apart. Every node is a function of its number: a
// graph of any size takes no memory.
const (
	community = 96      // nodes
	topics    = 200     // a community has four of them
	classes   = 40      // a topic belongs to one; the first topic of a community decides
	words     = 48      // mean length of a text
	topical   = 0.3     // share of the words that come from a topic of the community
	jargon    = 50      // words of a topic
	offsets   = 14      // distances of links into the community, of which some are left out
	least     = 0.4     // communities keep a share of the links from here up to 1
	strangers = 0.2     // share of the nodes with a pair of links to anywhere
	misfiled  = 0.1     // share of the nodes whose class is not that of their community
	rare      = 1 << 22 // size of the vocabulary
	common    = 1 << 16 // the words of topics are among these
	textBytes = 330     // of a text, about
	degree    = 20      // links of a node, about
)

// graph yields the nodes of a synthetic graph as the commit log of one shard.
type graph struct {
	nodes int
	seed  uint64
}

// Cut implements build.Log.
func (graph) Cut() map[int]int64 { return map[int]int64{0: 1} }

func (g graph) Size(context.Context) (stages.Size, error) {
	s := stages.Size{Rows: int64(g.nodes), Bytes: int64(g.nodes) * 2 * textBytes, Nodes: int64(g.nodes),
		Links: int64(g.nodes) * degree}
	each := stages.SplitRows(s.Rows)
	for after := int64(0); after < s.Rows; after += each {
		s.Splits = append(s.Splits, stages.Split{After: after, To: min(after+each, s.Rows)})
	}
	return s, nil
}

func (g graph) Fingerprint() work.Fingerprint { return commitlog.NewGraphHasher() }

// Orders yields none.
func (graph) Orders(context.Context, int) iter.Seq2[rows.Order, error] {
	return func(func(rows.Order, error) bool) {}
}

// Vectors yields none.
func (graph) Vectors(context.Context, int) iter.Seq2[rows.Vectors, error] {
	return func(func(rows.Vectors, error) bool) {}
}

// Rows yields a split: nodes take the place of manifests.
func (g graph) Rows(_ context.Context, s stages.Split) iter.Seq2[generation.Row, error] {
	return func(yield func(generation.Row, error) bool) {
		for i := int(s.After); i < int(s.To); i++ {
			if !yield(generation.Row{Row: g.row(i), Seq: 1}, nil) {
				return
			}
		}
	}
}

// textBytes is about how many bytes all texts have, by those of some nodes.
func (g graph) textBytes() (n int64) {
	const some = 2000
	for k := range some {
		i := k * g.nodes / some
		n += int64(len(g.text(i, i/community)))
	}
	return n * int64(g.nodes) / some
}

func id(i int) string { return fmt.Sprintf("node-%09d", i) }

func (g graph) row(i int) rows.Row {
	c := i / community
	class := g.topic(c, 0) % classes
	if other := numeric.NewRand(g.seed, uint64(i), 'C'); other.Float64() < misfiled {
		class = other.IntN(classes)
	}
	r := rows.Row{NodeID: id(i), Class: fmt.Sprintf("class %d", class), EventTime: 1, Text: g.text(i, c)}
	for _, j := range g.neighbours(i, c) {
		r.Labels = append(r.Labels, id(j))
	}
	return r
}

// topic is one of the four topics of a community.
func (g graph) topic(c, k int) int {
	r := numeric.NewRand(g.seed, uint64(c), uint64(k), 'P')
	return r.IntN(topics)
}

// text draws words by Zipf's law: most from the language, the others from the topics of the community, half of these
// from the first.
func (g graph) text(i, c int) string {
	r := numeric.NewRand(g.seed, uint64(i), 'T')
	var b strings.Builder
	for range words/2 + r.IntN(words) {
		rank := zipf(&r)
		if r.Float64() < topical {
			topic := g.topic(c, max(0, r.IntN(6)-2))
			rank = int(numeric.Mix(uint64(topic*jargon+rank%jargon)) % common)
		}
		b.WriteString(word(rank))
		b.WriteByte(' ')
	}
	return b.String()
}

// zipf draws the rank of a word: the probability of rank k is about proportional to 1/k.
func zipf(r *numeric.Rand) int { return int(math.Exp(r.Float64()*math.Log(rare))) - 1 }

// word makes up the word of a rank, longer for rarer words.
func word(rank int) string {
	const consonants, vowels = "bcdfghjklmnprstvwz", "aeiou"
	h := numeric.Mix(uint64(rank) + 77)
	var b []byte
	for k := rank; ; k /= len(consonants) * len(vowels) / 3 {
		b = append(b, consonants[h%uint64(len(consonants))], vowels[h/32%uint64(len(vowels))])
		h = numeric.Mix(h)
		if k == 0 {
			return string(b)
		}
	}
}

// neighbours are the ends of links at fixed distances, so that both ends know of a link: about 20 of them.
func (g graph) neighbours(i, c int) []int {
	first := c * community
	size := min(community, g.nodes-first)
	var all []int
	add := func(j int) {
		if j != i && g.has(min(i, j), max(i, j)) {
			all = append(all, j)
		}
	}
	furthest := size/2 - 1 // a prime for a whole community, so that distances differ
	begin := int(numeric.Mix(g.seed^uint64(c)<<1) % community)
	for k := range min(offsets, furthest) {
		d := 1 + (begin+7*k)%furthest
		add(first + (i-first+d)%size)
		add(first + (i-first-d+size)%size)
	}
	far := g.nodes/3 + 1
	for _, j := range []int{(i + far) % g.nodes, (i - far + g.nodes) % g.nodes} {
		if r := numeric.NewRand(g.seed, uint64(min(i, j)), uint64(max(i, j)), 'F'); j != i && r.Float64() < strangers {
			all = append(all, j)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (g graph) has(i, j int) bool {
	share := numeric.NewRand(g.seed, uint64(i/community), 'K')
	r := numeric.NewRand(g.seed, uint64(i), uint64(j), 'L')
	return r.Float64() < least+(1-least)*share.Float64()
}
