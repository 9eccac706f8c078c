package replay_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"reflect"
	"testing"

	"giantstream/sink/rows"
	"giantstream/stream/mutation"
	"giantstream/stream/oracle"
	"giantstream/stream/replay"
)

func shardOf(id string, shards int) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	return int(h.Sum32()) % shards
}

// random draws the mutations of a shard's topics over few nodes and few event times, in any order, so that everything
// collides with everything.
func random(rng *rand.Rand, shards, n int) [][]mutation.Mutation {
	logs, next := make([][]mutation.Mutation, shards), make([][2]int64, shards)
	id := func() string { return fmt.Sprintf("n%d", rng.IntN(12)) }
	ids := func() (out []string) {
		for range rng.IntN(4) {
			out = append(out, id())
		}
		return out
	}
	for range n {
		m := mutation.Mutation{Op: mutation.Op(1 + rng.IntN(6)), ID: id()}
		switch m.Op {
		case mutation.PutNode:
			m.Text, m.HasEdges = fmt.Sprintf("text %d", rng.IntN(5)), rng.IntN(2) == 0
			if m.HasEdges {
				m.Others = ids()
			}
		case mutation.PutEdge, mutation.DeleteEdge:
			m.Other, m.Weight = id(), mutation.Weight(rng.IntN(2))
		case mutation.SetEdges:
			m.Others, m.Weight = ids(), mutation.WeightOf(float32(rng.IntN(3)))
		}
		if m.Op >= mutation.PutEdge {
			m.Version.Rank = 1
		}
		p := shardOf(m.ID, shards)
		m.Version.EventTime, m.Version.Offset = int64(rng.IntN(12)), next[p][m.Version.Rank]
		next[p][m.Version.Rank]++
		logs[p] = append(logs[p], m)
	}
	return logs
}

// A replay of the mutations up to an event time gives the rows that these mutations alone define, in whatever order
// they and the later ones came.
func TestReplayUpToAnEventTime(t *testing.T) {
	for seed := range uint64(24) {
		rng := rand.New(rand.NewPCG(seed, 1))
		shards, undirected := 1+rng.IntN(3), rng.IntN(3) > 0
		logs := random(rng, shards, 40+rng.IntN(200))
		until := int64(rng.IntN(13)) - 1
		want := oracle.New(undirected)
		for _, log := range logs {
			for _, m := range log {
				if m.Version.EventTime <= until {
					want.Add(m)
				}
			}
		}
		g, err := replay.Run(t.Context(), replay.Options{Shards: shards, Undirected: undirected, Dir: t.TempDir(),
			Of: func(id string) int { return shardOf(id, shards) }},
			func(_ context.Context, p int, each func(mutation.Mutation) error) error {
				for _, m := range logs[p] {
					if m.Version.EventTime > until {
						continue
					}
					if err := each(m); err != nil {
						return err
					}
				}
				return nil
			})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		got := map[string]rows.Row{}
		for p := range shards {
			for r, err := range g.Cut.Newest(t.Context(), g.Store, p) {
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				got[r.NodeID] = plain(r.Row)
			}
		}
		all := want.Rows()
		for id, row := range all {
			if row := plain(row); !reflect.DeepEqual(got[id], row) {
				t.Errorf("seed %d, until %d: row %+v, want %+v", seed, until, got[id], row)
			}
		}
		if len(got) != len(all) {
			t.Errorf("seed %d, until %d: %d rows, want %d", seed, until, len(got), len(all))
		}
	}
}

// plain is a row as the graph defines it: without features, and with nil for what is empty.
func plain(r rows.Row) rows.Row {
	out := rows.Row{NodeID: r.NodeID, Text: r.Text, Class: r.Class, EventTime: r.EventTime, Deleted: r.Deleted}
	out.Labels = append(out.Labels, r.Labels...)
	out.LinkEnds, out.LinkWeights, out.LinkTimes = r.LinkEnds, r.LinkWeights, r.LinkTimes
	out.LinkKinds = r.LinkKinds
	return out
}

func TestAnErrorOfTheInputEndsTheReplay(t *testing.T) {
	broken := errors.New("broken")
	_, err := replay.Run(t.Context(), replay.Options{Shards: 2, Dir: t.TempDir(), Of: func(string) int { return 0 }},
		func(context.Context, int, func(mutation.Mutation) error) error { return broken })
	if !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}
