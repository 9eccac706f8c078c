package export_test

import (
	"fmt"
	"slices"
	"testing"

	"giantstream/ingest/client"
	"giantstream/sink/memstore"
	"giantstream/sink/rows"
	"giantstream/stream/export"
	"giantstream/stream/mutation"
	"giantstream/stream/oracle"
)

// An export has the vectors that a cut covers, as a table of their own, and none where there are none.
func TestVectorsAreExported(t *testing.T) {
	w := newWorld(t, 1, 2, false)
	w.round(20)
	for step := range 2 {
		batches := make([][]mutation.Mutation, len(w.shards))
		for i := range 8 {
			m := mutation.Mutation{Op: mutation.PutNode, ID: fmt.Sprintf("v%d", i), Text: "t", HasVectors: true,
				Version: mutation.Version{EventTime: int64(1000 + step)}}
			if i > 3*step { // the second time some are taken back
				m.Vectors = []mutation.Vector{{Name: "image", Precision: mutation.Float16,
					Data: string([]byte{byte(i), 0x3C, byte(step), 0x3C})}}
			}
			p := client.Partition([]byte(m.ID), len(w.shards))
			m.Version.Offset = w.next[p][0]
			w.next[p][0]++
			batches[p] = append(batches[p], m)
			w.said = append(w.said, m)
		}
		w.apply(batches)
		w.round(0)
	}
	for _, at := range w.moments {
		into := &memstore.Store{Name: "export"}
		doc, err := export.Run(t.Context(), export.Options{Store: w.store, Into: into, Cut: at.cut,
			Generation: export.NoGeneration})
		if err != nil {
			t.Fatal(err)
		}
		var got []oracle.NodeVectors
		for _, part := range doc.Vectors {
			for row, err := range rows.NodeVectors.Read(t.Context(), into, part.Ref(), rows.ReadOptions{}) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, oracle.VectorsOf(&row))
			}
		}
		slices.SortFunc(got, func(a, b oracle.NodeVectors) int { return slices.Compare([]byte(a.ID), []byte(b.ID)) })
		g := oracle.New(false)
		for _, m := range w.said[:at.said] {
			g.Add(m)
		}
		if want := g.Vectors(); !slices.EqualFunc(got, want, oracle.NodeVectors.Equal) {
			t.Errorf("after %d records: %+v, want %+v", at.said, got, want)
		}
	}
}
