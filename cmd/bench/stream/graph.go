package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"

	"giantstream/ingest/client"
)

// graph is generated from its seed: nodes with texts of made-up words, and for each node an edge to
// `degree` others. No two edges join the same pair, in either direction, so the graph has
// nodes·degree links and twice as many labels.
type graph struct {
	nodes, degree int
	seed          uint64
	words         []string
	strides       []int
}

// recordBytes is the size of a node's record.
const recordBytes = 600

func newGraph(nodes, degree int, seed uint64) *graph {
	r := rand.New(rand.NewPCG(seed, 1))
	g := &graph{nodes: nodes, degree: degree, seed: seed}
	const syllables = "bacadafagalamanarasatavabedefegelemenereseteve"
	for range 20_000 {
		var w strings.Builder
		for range 2 + r.IntN(3) {
			at := 2 * r.IntN(len(syllables)/2)
			w.WriteString(syllables[at : at+2])
		}
		g.words = append(g.words, w.String())
	}
	// With all strides below half of the circle, two nodes are never a stride apart in both
	// directions.
	for _, s := range r.Perm((nodes - 1) / 2)[:degree] {
		g.strides = append(g.strides, s+1)
	}
	return g
}

func (g *graph) id(i int) string { return fmt.Sprintf("node-%08d", i) }

// records is the number of records of nodes and edges.
func (g *graph) records() int64 { return int64(g.nodes) * int64(1+g.degree) }

// node is the record of node i in its version-th revision.
func (g *graph) node(topic string, i, version int) kafka.Message {
	id := g.id(i)
	r := rand.New(rand.NewPCG(g.seed, uint64(i)<<20+uint64(version)))
	value := make([]byte, 0, recordBytes)
	value = fmt.Appendf(value, `{"id":%q,"text":"revision %d`, id, version)
	for {
		// Squaring makes some words frequent and most of them rare.
		f := r.Float64()
		w := g.words[int(f*f*float64(len(g.words)))]
		if len(value)+len(w)+3 > recordBytes {
			break
		}
		value = append(append(value, ' '), w...)
	}
	for len(value) < recordBytes-2 {
		value = append(value, '.')
	}
	return kafka.Message{Topic: topic, Key: []byte(id), Value: append(value, `"}`...)}
}

// edge is the record of node i's k-th edge.
func (g *graph) edge(topic string, i, k int) kafka.Message {
	src, dst := g.id(i), g.id((i+g.strides[k])%g.nodes)
	return kafka.Message{Topic: topic, Key: []byte(src), Value: fmt.Appendf(nil, `{"src":%q,"dst":%q}`, src, dst)}
}

// produce sends the whole graph, edges among the nodes, and waits until it is acknowledged.
func (g *graph) produce(ctx context.Context, c *client.Client, nodes, edges string) error {
	p := c.NewProducer()
	start := time.Now()
	const chunk = 2000
	msgs := make([]kafka.Message, 0, chunk*(1+g.degree))
	for i := 0; i < g.nodes; i++ {
		msgs = append(msgs, g.node(nodes, i, 0))
		for k := range g.degree {
			msgs = append(msgs, g.edge(edges, i, k))
		}
		if (i+1)%chunk == 0 || i == g.nodes-1 {
			if err := p.Send(ctx, msgs...); err != nil {
				return err
			}
			msgs = make([]kafka.Message, 0, cap(msgs)) // the producer keeps the old one until its flush
		}
	}
	if err := p.Flush(ctx); err != nil {
		return err
	}
	progress("sent %d nodes and %d edges in %.1f s", g.nodes, g.nodes*g.degree, time.Since(start).Seconds())
	return p.Close()
}
