package sim

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	"giantstream/sink/rows"
	"giantstream/stream/commitlog"
	"giantstream/stream/mutation"
	"giantstream/stream/oracle"
)

// withVectors lets a mutation state a vector, or that there is none.
func withVectors(r *rand.Rand, m mutation.Mutation) mutation.Mutation {
	m.HasVectors = true
	switch r.IntN(6) {
	case 0, 1:
	case 2, 3:
		m.Vectors = orderedVector(r)
	default:
		m.Vectors = []mutation.Vector{{Name: "image", Precision: mutation.Float16,
			Data: string([]byte{byte(r.IntN(6)), 0x3C, 0, 0x3C})}}
	}
	return m
}

// vectorsOf returns the vectors that a set of mutations states, by node and input.
func vectorsOf(all []mutation.Mutation) []oracle.NodeVectors {
	g := oracle.New(false)
	for _, m := range all {
		if m.HasVectors {
			g.Add(m)
		}
	}
	return g.Vectors()
}

// differentVectors describes the first vectors that differ; "" if there are none. Those wanted are sorted.
func differentVectors(got []oracle.NodeVectors, want []oracle.NodeVectors) string {
	got = slices.DeleteFunc(got, func(v oracle.NodeVectors) bool { return len(v.Vectors) == 0 })
	slices.SortFunc(got, func(a, b oracle.NodeVectors) int {
		return slices.Compare([]string{a.ID, string([]byte{a.Input})}, []string{b.ID, string([]byte{b.Input})})
	})
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			return fmt.Sprintf("node %s has no row of vectors, want %+v", want[i].ID, want[i])
		case i >= len(want) || !got[i].Equal(want[i]):
			return fmt.Sprintf("there are the vectors %+v, want %+v", got[i],
				want[min(i, len(want)):min(i+1, len(want))])
		}
	}
	return ""
}

// readVectors enters the vectors of a window. Those of a node and input are there once, and
// take the place of the former. Manifests count them.
func (v *watch) readVectors(ctx context.Context, shard int, m *commitlog.Manifest) {
	inWindow := map[string]bool{}
	for _, o := range m.Objects {
		if o.Table != rows.NodeVectors.Name {
			continue
		}
		for row, err := range rows.NodeVectors.Read(ctx, &v.w.store, o.Ref(), rows.ReadOptions{}) {
			key := rows.NodeVectors.Key(&row)
			if err != nil || inWindow[key] {
				v.w.fail("manifest %d of shard %d names %s: vectors of %s, there before: %t, %v", m.Seq, shard, o.Key,
					row.NodeID, inWindow[key], err)
				return
			}
			v.vectors[shard][key], inWindow[key] = oracle.VectorsOf(&row), true
		}
	}
	counts := map[string]int64{}
	for _, of := range v.vectors[shard] {
		for i := range of.Vectors {
			counts[of.Vectors[i].Name]++
		}
	}
	if !maps.Equal(m.Vectors, counts) {
		v.w.fail("manifest %d of shard %d counts the vectors %v, its rows are %v", m.Seq, shard, m.Vectors, counts)
	}
}

// checkVectors compares the vectors of a cut with those that were sent, which it returns.
func (w *world) checkVectors(ctx context.Context, cut commitlog.Cut, all []mutation.Mutation) []oracle.NodeVectors {
	var got []oracle.NodeVectors
	for s := range w.plan.shards {
		for row, err := range cut.NewestVectors(ctx, &w.store, s) {
			if err != nil {
				w.fail("vectors: %v", err)
				return nil
			}
			got = append(got, oracle.VectorsOf(&row.Vectors))
		}
	}
	want := vectorsOf(all)
	if diff := differentVectors(got, want); diff != "" {
		w.fail("the newest vectors are not those that were sent: %s", diff)
	}
	return want
}

// vector says whether the vectors of a record are news, or older than what is known. It sees the records of one topic.
func (t *tally) vector(m *mutation.Mutation) (won, lost bool) {
	before, stated := t.vectors[m.ID]
	if stated && m.Version.Compare(before.Version) <= 0 {
		return false, true
	}
	t.vectors[m.ID] = *m
	return !slices.Equal(before.Vectors, m.Vectors), false
}
