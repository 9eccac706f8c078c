package wiring

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"giantstream/config"
	"giantstream/stream/commitlog"
)

// Remapped is a setting of the graph that differs from the one by which the records of a store were read.
type Remapped struct {
	Field string `json:"field"`
	From  string `json:"from"`
	To    string `json:"to"`
	// Needs says what takes the change over, for people.
	Needs string `json:"needs"`
	// OtherNodes says that the records are about other nodes, which nothing can be compared with.
	OtherNodes bool `json:"other_nodes,omitempty"`
}

// Remapping returns what differs between a configuration and the mapping by which the records of a store were read, by
// name. The mirror topic is left out: each pipeline has its own.
func Remapping(id commitlog.Identity, cfg *config.Config) []Remapped {
	out := []Remapped{}
	have, want := maps.Clone(id.Settings), GraphSettings(cfg)
	delete(have, "kafka.topics.mirror")
	delete(want, "kafka.topics.mirror")
	if have == nil {
		have = map[string]string{}
	}
	have[undirectedField], want[undirectedField] = fmt.Sprint(id.Undirected), fmt.Sprint(cfg.Ingest.Undirected)
	names := maps.Clone(have)
	maps.Copy(names, want)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if have[name] != want[name] {
			r := Remapped{Field: name, From: have[name], To: want[name], OtherNodes: name == "ingest.nodes.id"}
			r.Needs = remapNeeds(name)
			out = append(out, r)
		}
	}
	return out
}

const undirectedField = "ingest.undirected"

// remapNeeds says what takes over a change of a field.
func remapNeeds(field string) string {
	for _, n := range needs {
		if strings.HasPrefix(field, n.prefix) {
			return n.words
		}
	}
	return "all records are read again"
}

// needs are in the order in which they are looked at: the first prefix of a field holds.
var needs = []struct{ prefix, words string }{
	{"ingest.nodes.id", "these are other nodes: a new pipeline"},
	{"ingest.nodes.text", "texts are read again, and all embeddings made anew"},
	{"ingest.nodes.strip_html", "texts are read again, and all embeddings made anew"},
	{"ingest.nodes.class", "classes are read again, which are for evaluation alone"},
	{"ingest.nodes.attributes", "attributes are read again; texts and links stay"},
	{"ingest.nodes.vectors", "vectors are read again, and all embeddings made anew"},
	{"ingest.nodes.edges", "links are read again, and all embeddings made anew"},
	{"ingest.nodes.", "all records of nodes are read again: some may win that lost, come or go"},
	{"ingest.attributes.vectors", "vectors are read again, and all embeddings made anew"},
	{"ingest.external.", "the model is asked for vectors of all texts, and all embeddings made anew"},
	{"ingest.attributes.", "attributes are read again; texts and links stay"},
	{"ingest.edges.", "links are read again, and all embeddings made anew"},
	{undirectedField, "links are read again, and all embeddings made anew"},
	{"ingest.baskets.", "orders are read again, and what goes together is counted anew"},
	{"kafka.topics.", "other topics are read, from their first records"},
	{"ingest.repartition", "all topics are read again, through copies or without them"},
}

// MappedBefore returns a configuration with the mapping by which the records of a store were read.
func MappedBefore(id commitlog.Identity, cfg *config.Config) (*config.Config, error) {
	values := new(config.Default()).Values(config.Graph)
	maps.Copy(values, addedSettings)
	maps.Copy(values, id.Settings)
	old := *cfg
	old.Pipeline, old.Shards, old.Ingest.Undirected = id.Name, id.Shards, id.Undirected
	if err := old.Restore(values); err != nil {
		return nil, fmt.Errorf("read the settings that the store was made with: %w", err)
	}
	return &old, nil
}
