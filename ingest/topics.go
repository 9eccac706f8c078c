package ingest

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"

	"giantstream/ingest/client"
	"giantstream/stream/mutation"
)

// Topics names the Kafka topics of a pipeline. Nodes, Edges and Mirror have the same number of
// partitions: partition p of each is shard p.
type Topics struct {
	Nodes string
	Edges string
	// Further are the topics of the inputs from mutation.Further on (Ranked); "" for one that is not read
	// any more.
	Further []string
	// Orders is the one of Further that has orders; "" for none.
	Orders string
	// OneKind are those of Further that have edges, each of a kind of its own.
	OneKind []string
	// External is the one of Further that has the vectors of an external model (package external); "" for none.
	External string
	// Ordered is the one of Further that says what nodes are ordered with (package ordered); "" for none.
	Ordered string
	// Mirror carries the assertions of an undirected graph to the shard of the far end; "" for a
	// directed graph.
	Mirror     string
	Embeddings string
	// Canary gets the embeddings of new generations first, "" for none.
	Canary      string
	DeadLetters string
	// Origins has, by topic that shards read, the source topic whose records are copied there with the right
	// keys (package repartition). A source may have any number of partitions. It is empty if shards read the
	// sources.
	Origins map[string]string
}

// Repartitioned reports whether the shards read copies of the source topics.
func (t Topics) Repartitioned() bool { return len(t.Origins) > 0 }

// Copied reports whether a topic that shards read has copies of the records of a source topic.
func (t Topics) Copied(topic string) bool { return t.Origins[topic] != "" }

// HasOrigins reports whether the records of a topic that shards read may name those that they were made of, whose
// versions they have.
func (t Topics) HasOrigins(topic string) bool {
	return t.Copied(topic) || topic != "" && topic == t.External
}

// Filled are the topics that shards read and the pipeline itself fills: none but it may.
func (t Topics) Filled() []string {
	filled := t.Keyed()
	if t.External != "" {
		filled = append(filled, t.External)
	}
	if t.Ordered != "" {
		filled = append(filled, t.Ordered)
	}
	return filled
}

// Source is the topic to which producers send what shards read in a topic.
func (t Topics) Source(topic string) string { return cmp.Or(t.Origins[topic], topic) }

// Keyed are the topics that have copies of the records of others, in the order of Numbered.
func (t Topics) Keyed() []string {
	return slices.DeleteFunc(t.Stating(), func(topic string) bool { return !t.Copied(topic) })
}

// Sources are the topics that are copied, in the order of Keyed.
func (t Topics) Sources() []string {
	topics := t.Keyed()
	for i := range topics {
		topics[i] = t.Source(topics[i])
	}
	return topics
}

// Ranked returns the topics with each further one at the number of its input. names are those of all further
// inputs that the pipeline ever had, by number.
func (t Topics) Ranked(names []string) Topics {
	further := make([]string, len(names))
	for i, name := range names {
		if slices.Contains(t.Further, name) {
			further[i] = name
		}
	}
	t.Further = further
	return t
}

// Numbered yields the topics that a shard reads, by the numbers of their inputs: nodes, edges, further ones, mirror.
func (t Topics) Numbered() iter.Seq2[mutation.Input, string] {
	return func(yield func(mutation.Input, string) bool) {
		if !yield(mutation.Nodes, t.Nodes) || !yield(mutation.Edges, t.Edges) {
			return
		}
		for i, topic := range t.Further {
			if topic != "" && !yield(mutation.Further+mutation.Input(i), topic) {
				return
			}
		}
		if t.Mirror != "" {
			yield(mutation.Mirror, t.Mirror)
		}
	}
}

// NumberOf returns the number of the input that a topic is.
func (t Topics) NumberOf(topic string) mutation.Input {
	for in, name := range t.Numbered() {
		if name == topic {
			return in
		}
	}
	return mutation.Mirror
}

// Stating are the inputs whose records state facts: all but the mirror, which repeats them.
func (t Topics) Stating() []string {
	t.Mirror = ""
	return t.Inputs()
}

// Given are those of Stating that say what the pipeline cannot know: all but Ordered, which follows from the orders.
func (t Topics) Given() []string {
	return slices.DeleteFunc(t.Stating(), func(topic string) bool { return topic == t.Ordered })
}

// Inputs are the topics that a shard reads, in the order of Numbered.
func (t Topics) Inputs() (topics []string) {
	for _, topic := range t.Numbered() {
		topics = append(topics, topic)
	}
	return topics
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
		specs = append(specs, client.TopicSpec{Name: in, Partitions: shards, Compacted: in == t.Ordered})
	}
	for _, source := range t.Sources() {
		specs = append(specs, client.TopicSpec{Name: source, Partitions: shards, Flexible: true})
	}
	return specs
}

// Validate checks that every topic has a name and that no two share one.
func (t Topics) Validate() error {
	var errs []error
	used := map[string]string{}
	roles := []struct{ role, name string }{
		{"nodes", t.Nodes}, {"edges", t.Edges}, {"mirror", t.Mirror},
		{"embeddings", t.Embeddings}, {"canary", t.Canary}, {"dead-letter", t.DeadLetters},
	}
	for _, topic := range t.Sources() {
		roles = append(roles, struct{ role, name string }{"source", topic})
	}
	for _, topic := range t.Further {
		if topic != "" {
			roles = append(roles, struct{ role, name string }{"further input", topic})
		}
	}
	for _, n := range roles {
		switch {
		case n.name == "" && (n.role == "mirror" || n.role == "canary"):
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
