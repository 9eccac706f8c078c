package shard

import (
	"giantstream/sink/rows"
	"giantstream/stream/mutation"
	"giantstream/stream/oracle"
)

// model computes what the rows of a graph must be. It is the reference that the incremental state is compared
// with.
func model(all []mutation.Mutation, undirected bool) map[string]rows.Row {
	g := oracle.New(undirected)
	for _, m := range all {
		g.Add(m)
	}
	return g.Rows()
}
