package ingest

import (
	"errors"
	"fmt"
	"strings"

	"giantstream/ingest/client"
)

// Topics names the Kafka topics of a pipeline. Nodes, Edges and Mirror have the same number of
// partitions: partition p of each is shard p.
type Topics struct {
	Nodes string
	Edges string
	// Mirror carries the assertions of an undirected graph to the shard of the far end; "" for a
	// directed graph.
	Mirror     string
	Embeddings string
	// Canary gets the embeddings of new generations first, "" for none.
	Canary      string
	DeadLetters string
	// SourceNodes and SourceEdges, unless "", are copied to Nodes and Edges with the right keys
	// (package repartition). They may have any number of partitions.
	SourceNodes, SourceEdges string
}

// Repartitioned reports whether the shards read copies of the source topics.
func (t Topics) Repartitioned() bool { return t.SourceNodes != "" }

// Sources are the topics that are copied, nil if there are none.
func (t Topics) Sources() []string {
	if !t.Repartitioned() {
		return nil
	}
	return []string{t.SourceNodes, t.SourceEdges}
}

// Inputs are the topics that a shard reads, in the order nodes, edges, mirror.
func (t Topics) Inputs() []string {
	in := []string{t.Nodes, t.Edges}
	if t.Mirror != "" {
		in = append(in, t.Mirror)
	}
	return in
}

// Specs returns what the topics of a pipeline with that many shards must be: the inputs have a
// partition per shard, and the embeddings topic is compacted.
func (t Topics) Specs(shards int) []client.TopicSpec {
	specs := []client.TopicSpec{
		{Name: t.Embeddings, Partitions: shards, Flexible: true, Compacted: true},
		{Name: t.DeadLetters, Partitions: 1, Flexible: true},
	}
	if t.Canary != "" {
		specs = append(specs, client.TopicSpec{Name: t.Canary, Partitions: shards, Flexible: true, Compacted: true})
	}
	for _, in := range t.Inputs() {
		specs = append(specs, client.TopicSpec{Name: in, Partitions: shards})
	}
	if t.Repartitioned() {
		specs = append(specs, client.TopicSpec{Name: t.SourceNodes, Partitions: shards, Flexible: true},
			client.TopicSpec{Name: t.SourceEdges, Partitions: shards, Flexible: true})
	}
	return specs
}

// Validate checks that every topic has a name and that no two share one.
func (t Topics) Validate() error {
	var errs []error
	used := map[string]string{}
	for _, n := range []struct{ role, name string }{
		{"nodes", t.Nodes}, {"edges", t.Edges}, {"mirror", t.Mirror},
		{"embeddings", t.Embeddings}, {"canary", t.Canary}, {"dead-letter", t.DeadLetters},
		{"source nodes", t.SourceNodes}, {"source edges", t.SourceEdges},
	} {
		switch {
		case n.name == "" && (n.role == "mirror" || n.role == "canary"):
		case n.name == "" && strings.HasPrefix(n.role, "source") && !t.Repartitioned():
		case n.name == "":
			errs = append(errs, fmt.Errorf("the %s topic has no name", n.role))
		case used[n.name] != "":
			errs = append(errs, fmt.Errorf("the %s and %s topics are both named %q", used[n.name], n.role, n.name))
		default:
			used[n.name] = n.role
		}
	}
	return errors.Join(errs...)
}
