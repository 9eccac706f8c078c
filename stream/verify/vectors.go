package verify

import (
	"context"
	"fmt"

	"giantstream/sink"
	"giantstream/stream/commitlog"
	"giantstream/stream/oracle"
)

// compareVectors compares the newest row of the vectors of every node and input with what it must be.
func (d *Differences) compareVectors(ctx context.Context, store sink.Store, cut commitlog.Cut,
	stated []oracle.NodeVectors) error {
	type key struct {
		id    string
		input uint8
	}
	want := map[key]oracle.NodeVectors{}
	for _, v := range stated {
		want[key{v.ID, v.Input}] = v
		d.Vectors += int64(len(v.Vectors))
	}
	different := func(k key, what string) { d.add(k.id, fmt.Sprintf("vectors of input %d: %s", k.input, what)) }
	for shard := range cut {
		for row, err := range cut.Vectors(ctx, store, shard) {
			if err != nil {
				return err
			}
			got := oracle.VectorsOf(&row.Vectors)
			k := key{got.ID, got.Input}
			expected, ok := want[k]
			delete(want, k)
			switch {
			case !ok && len(got.Vectors) > 0:
				different(k, "a row was committed, and the topics do not state it")
			case ok && !got.Equal(expected):
				different(k, "the row has other names or numbers than the topics state")
			}
		}
	}
	for k := range want {
		different(k, "the topics state them, and no row was committed")
	}
	return nil
}
