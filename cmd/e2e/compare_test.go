package e2e_test

import (
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"testing"

	"giantstream/sink/embedding"
	"giantstream/sink/rows"
	"giantstream/train/generation"
)

// checkGraph compares the newest rows with the graph that the input states.
func checkGraph(t *testing.T, got map[string]rows.Row, want map[string]node) {
	t.Helper()
	live := 0
	for id, r := range got {
		n, ok := want[id]
		switch {
		case r.Deleted && ok:
			t.Errorf("node %s is deleted", id)
		case r.Deleted:
		case !ok:
			t.Errorf("node %s should not be there: %+v", id, r)
		case r.Text != n.text || r.Class != n.class:
			t.Errorf("node %s is %q (%s), want %q (%s)", id, r.Text, r.Class, n.text, n.class)
		case !slices.Equal(r.Labels, n.labels):
			t.Errorf("node %s has the neighbours %q, want %q", id, r.Labels, n.labels)
		}
		if !r.Deleted {
			live++
		}
	}
	if live != len(want) {
		t.Errorf("%d live nodes, want %d", live, len(want))
	}
}

// checkSame compares the outcomes of two pipelines on the same input. Only where a row stands in
// the commit log may differ, and whether a row that has not changed stands there again: windows close when they do,
// and a restart may write such a row.
func checkSame(t *testing.T, got, want outcome) {
	t.Helper()
	if got.doc.Generation != want.doc.Generation || got.doc.GraphHash != want.doc.GraphHash {
		t.Errorf("generation %d of graph %s, want %d of %s",
			got.doc.Generation, got.doc.GraphHash, want.doc.Generation, want.doc.GraphHash)
	}
	sameMap(t, "newest row", rowsAsOf(got.rows, want.rows), want.rows)
	sameMap(t, "embedding", withoutSeq(got.embeddings), withoutSeq(want.embeddings))
	sameMap(t, "published embedding", withoutSeq(got.published), withoutSeq(want.published))
	sameMap(t, "dead letter", got.refused, want.refused)
	sameMap(t, "order", got.orders, want.orders)
	for _, f := range []struct {
		what      string
		got, want any
	}{
		{"settings", got.doc.Settings, want.doc.Settings},
		{"graph", got.doc.Graph, want.doc.Graph},
		{"tree", got.doc.Tree, want.doc.Tree},
		{"encoder", encoderStats(t, got.doc), encoderStats(t, want.doc)},
		{"evaluation", got.doc.Evaluation, want.doc.Evaluation},
	} {
		if !reflect.DeepEqual(f.got, f.want) {
			t.Errorf("generation.json: %s is\n%+v\nwant\n%+v", f.what, f.got, f.want)
		}
	}
}

// rowsAsOf returns rows without the features of those that were written again after a restart, although they had not
// changed (PROTOCOL.md, "Which marks count"): they have the features of a generation later than the row that is wanted.
func rowsAsOf(got, want map[string]rows.Row) map[string]rows.Row {
	out := maps.Clone(got)
	for id, r := range got {
		if w, ok := want[id]; ok && r.Generation > w.Generation {
			r.Generation, r.FeatureIndices, r.FeatureValues = w.Generation, w.FeatureIndices, w.FeatureValues
			r.Targets, r.TargetCounts = w.Targets, w.TargetCounts
			out[id] = r
		}
	}
	return out
}

// encoderStats returns what the document says of the encoder, but for where its training was
// resumed.
func encoderStats(t *testing.T, doc *generation.Doc) map[string]any {
	t.Helper()
	e := doc.Encoder
	metrics := map[string]any{}
	if len(e.Metrics) > 0 {
		if err := json.Unmarshal(e.Metrics, &metrics); err != nil {
			t.Fatal(err)
		}
	}
	delete(metrics, "resumed_step")
	return map[string]any{"kind": e.Kind, "dim": e.Dim, "bytes": e.Bytes, "metrics": metrics}
}

func withoutSeq(records map[string]embedding.Record) map[string]embedding.Record {
	out := maps.Clone(records)
	for id, r := range out {
		r.Seq = 0
		out[id] = r
	}
	return out
}

// sameMap reports the first few keys under which two maps differ.
func sameMap[K cmp.Ordered, V any](t *testing.T, what string, got, want map[K]V) {
	t.Helper()
	differ := 0
	report := func(format string, args ...any) {
		t.Helper()
		if differ++; differ <= 3 {
			t.Errorf(format, args...)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(want)) {
		g, ok := got[id]
		if !ok {
			report("no %s of %v", what, id)
		} else if !reflect.DeepEqual(g, want[id]) {
			report("%s of %v is\n%+v\nwant\n%+v", what, id, g, want[id])
		}
	}
	for _, id := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[id]; !ok {
			report("%s of %v is one too many: %+v", what, id, got[id])
		}
	}
	if differ > 0 {
		t.Errorf("%s: %d differ of %d", what, differ, len(want))
	}
}
