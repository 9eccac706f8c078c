package e2e_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"giantstream/ingest/deadletter"
	"giantstream/ingest/decode"
	"giantstream/sink/rows"
)

// faultModel is the graph that the records on the input topics state, computed in the plainest way:
// for each node and each edge the statement with the latest event time counts, and of statements
// with the same time the last one on the topic.
type faultModel struct {
	rows    map[string]rows.Row
	refused map[deadletter.Origin]decode.Code
}

// said is a statement; offsets decide between those of the same time.
type said struct {
	at, offset  int64 // at in µs
	live        bool
	text, class string
}

func (s said) after(o said) bool {
	return s.at > o.at || s.at == o.at && s.offset > o.offset
}

// readInput reads the input topics and checks that they hold what was sent.
func readInput(t *testing.T, r *faultRun) faultModel {
	t.Helper()
	bad := map[string]decode.Code{}
	for _, b := range slices.Concat(badNodes, badEdges) {
		bad[b.value] = b.code
	}
	m := faultModel{refused: map[deadletter.Origin]decode.Code{}}
	nodes, edges := map[string]said{}, map[[2]string]said{}
	known := map[string]bool{}
	arrived := map[string]bool{}
	ends, err := r.client.EndOffsets(t.Context(), r.topics.Nodes, r.topics.Edges)
	if err != nil {
		t.Fatal(err)
	}
	for topic, partitions := range ends {
		for partition, end := range partitions {
			for msg, err := range r.client.Range(t.Context(), topic, partition, 0, end) {
				if err != nil {
					t.Fatal(err)
				}
				arrived[sentKey(topic, msg.Key, msg.Value, msg.Time)] = true
				if code, ok := bad[string(msg.Value)]; ok {
					m.refused[deadletter.Origin{Topic: topic, Partition: partition, Offset: msg.Offset}] = code
					continue
				}
				if topic == r.topics.Edges {
					var e edgeEvent
					decodeJSON(t, msg.Value, &e)
					key, s := [2]string{e.Src, e.Dst}, said{at: e.At * 1e6, offset: msg.Offset, live: !e.Deleted}
					if old, ok := edges[key]; !ok || s.after(old) {
						edges[key] = s
					}
					continue
				}
				n := nodeEvent{ID: string(msg.Key), At: msg.Time.Unix(), Deleted: true}
				if msg.Value != nil {
					n.Deleted = false
					decodeJSON(t, msg.Value, &n)
				}
				s := said{n.At * 1e6, msg.Offset, !n.Deleted, n.Text, n.Label}
				if old, ok := nodes[n.ID]; !ok || s.after(old) {
					nodes[n.ID] = s
				}
				known[n.ID] = known[n.ID] || s.live
			}
		}
	}
	// The brokers are not under test. Without this check, a record that they lost would look like
	// one that was never sent.
	if len(r.input.sent) != len(arrived) {
		t.Errorf("%d different records were acknowledged, %d are on the topics", len(r.input.sent), len(arrived))
	}
	for key := range r.input.sent {
		if !arrived[key] {
			t.Errorf("acknowledged, but not on the topic: %s", key)
		}
	}
	m.rows = rowsOf(nodes, edges, known, r.directed)
	return m
}

// rowsOf computes the newest row of every node. A node that never existed has none.
func rowsOf(nodes map[string]said, edges map[[2]string]said, known map[string]bool, directed bool) map[string]rows.Row {
	labels, newest := map[string]map[string]bool{}, map[string]int64{}
	touch := func(owner, other string, s said) {
		newest[owner] = max(newest[owner], s.at)
		if labels[owner] == nil {
			labels[owner] = map[string]bool{}
		}
		if s.live {
			labels[owner][other] = true
		}
	}
	for key, s := range edges {
		touch(key[0], key[1], s)
		if !directed {
			touch(key[1], key[0], s)
		}
	}
	out := map[string]rows.Row{}
	for id, s := range nodes {
		switch {
		case !known[id]:
		case s.live:
			out[id] = rows.Row{NodeID: id, Text: s.text, Class: s.class, EventTime: max(s.at, newest[id]),
				Labels: slices.Sorted(maps.Keys(labels[id]))}
		default:
			out[id] = rows.Row{NodeID: id, EventTime: s.at, Deleted: true}
		}
	}
	return out
}

func decodeJSON(t *testing.T, data []byte, v any) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
}
