package pipelinetest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"giantstream/sink/rows"
)

// Difference is what a test expected and what there was, in words. One of them is "" for what is missing or too much.
type Difference struct {
	Want string `json:"want"`
	Got  string `json:"got"`
}

// compare returns how an outcome differs from what was expected.
func (o *outcome) compare(want *Expectation, undirected bool) (out []Difference) {
	if want.Nodes != nil {
		out = append(out, o.compareNodes(*want.Nodes)...)
	}
	if want.Edges != nil {
		out = append(out, o.compareEdges(*want.Edges, undirected)...)
	}
	return append(out, o.compareLetters(want.DeadLetters)...)
}

func (o *outcome) compareNodes(want []Node) (out []Difference) {
	left := maps.Clone(o.rows)
	for i := range want {
		w := &want[i]
		row, ok := left[w.ID]
		delete(left, w.ID)
		switch {
		case !ok:
			out = append(out, Difference{Want: w.String()})
		case !w.fits(&row):
			out = append(out, Difference{w.String(), w.shown(&row).String()})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(left)) {
		row := left[id]
		out = append(out, Difference{Got: nodeOf(&row).String()})
	}
	return out
}

func (n *Node) fits(row *rows.Row) bool {
	return n.Deleted == row.Deleted && (n.Text == nil || *n.Text == row.Text) &&
		(n.Class == nil || *n.Class == row.Class) &&
		(n.Labels == nil || slices.Equal(slices.Sorted(slices.Values(*n.Labels)), row.Labels)) &&
		(n.EventTime.IsZero() || n.EventTime.UnixMicro() == row.EventTime)
}

// nodeOf returns the node that a test would expect of a row.
func nodeOf(row *rows.Row) *Node {
	if row.Deleted {
		return &Node{ID: row.NodeID, Deleted: true}
	}
	return &Node{ID: row.NodeID, Text: &row.Text, Class: &row.Class, Labels: &row.Labels}
}

// shown is a row with the fields that n names.
func (n *Node) shown(row *rows.Row) *Node {
	out := nodeOf(row)
	if row.Deleted || n.Deleted {
		return out
	}
	if n.Text == nil {
		out.Text = nil
	}
	if n.Class == nil {
		out.Class = nil
	}
	if n.Labels == nil {
		out.Labels = nil
	}
	if !n.EventTime.IsZero() {
		out.EventTime = Time{time.UnixMicro(row.EventTime).UTC()}
	}
	return out
}

// String is a node as a file of tests has it.
func (n *Node) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "node {id: %s", n.ID)
	if n.Deleted {
		b.WriteString(", deleted: true")
	}
	if n.Text != nil {
		fmt.Fprintf(&b, ", text: %q", *n.Text)
	}
	if n.Class != nil {
		fmt.Fprintf(&b, ", class: %q", *n.Class)
	}
	if n.Labels != nil {
		fmt.Fprintf(&b, ", labels: [%s]", strings.Join(slices.Sorted(slices.Values(*n.Labels)), ", "))
	}
	if !n.EventTime.IsZero() {
		fmt.Fprintf(&b, ", event_time: %s", n.EventTime.UTC().Format(time.RFC3339Nano))
	}
	return b.String() + "}"
}

func (e Edge) String() string {
	if e.Weight != nil {
		return fmt.Sprintf("edge {src: %s, dst: %s, weight: %v}", e.Src, e.Dst, *e.Weight)
	}
	return fmt.Sprintf("edge {src: %s, dst: %s}", e.Src, e.Dst)
}

// sorted are the ends in the order in which they are compared.
func (e ends) sorted(undirected bool) ends {
	if undirected && e.dst < e.src {
		return ends{e.dst, e.src}
	}
	return e
}

func (o *outcome) compareEdges(want []Edge, undirected bool) (out []Difference) {
	left := map[ends]Edge{}
	for id, row := range o.rows {
		for _, label := range row.Labels {
			e := ends{id, label}.sorted(undirected)
			left[e] = Edge{Src: e.src, Dst: e.dst}
		}
		for i, end := range row.LinkEnds {
			e := ends{id, end}.sorted(undirected)
			left[e] = Edge{e.src, e.dst, &row.LinkWeights[i]}
		}
	}
	expected := map[ends]Edge{}
	for _, w := range want {
		e := ends{w.Src, w.Dst}.sorted(undirected)
		expected[e] = Edge{e.src, e.dst, w.Weight}
	}
	for _, w := range sortedEdges(expected) {
		got, ok := left[ends{w.Src, w.Dst}]
		switch {
		case !ok:
			out = append(out, Difference{Want: w.String()})
		case w.Weight != nil && got.weight() != *w.Weight:
			got.Weight = new(got.weight())
			out = append(out, Difference{w.String(), got.String()})
		}
		delete(left, ends{w.Src, w.Dst})
	}
	for _, e := range sortedEdges(left) {
		out = append(out, Difference{Got: e.String()})
	}
	return out
}

// weight is that of an edge which may not have stated one.
func (e Edge) weight() float32 {
	if e.Weight == nil {
		return 1
	}
	return *e.Weight
}

func sortedEdges(set map[ends]Edge) []Edge {
	return slices.SortedFunc(maps.Values(set), func(a, b Edge) int {
		return cmp.Or(strings.Compare(a.Src, b.Src), strings.Compare(a.Dst, b.Dst))
	})
}

func (o *outcome) compareLetters(want []Letter) (out []Difference) {
	m := matching{want: want, got: o.letters, of: make([]int, len(o.letters))}
	for i := range m.of {
		m.of[i] = -1
	}
	for w := range want {
		if !m.match(w, make([]bool, len(o.letters))) {
			out = append(out, Difference{Want: want[w].String()})
		}
	}
	for i, l := range o.letters {
		if m.of[i] < 0 {
			got := Letter{l.topic, l.record, string(l.fault.Code), l.fault.Message}
			out = append(out, Difference{Got: got.String()})
		}
	}
	return out
}

// matching gives each expected letter one of its own. A letter may fit several expectations.
type matching struct {
	want []Letter
	got  []letter
	of   []int // by letter: the expectation that has it, -1 for none
}

// match finds a letter for expectation w, and moves those of others if that helps (an augmenting path, Kuhn 1955).
func (m *matching) match(w int, seen []bool) bool {
	for i, l := range m.got {
		if seen[i] || !m.want[w].fits(l) {
			continue
		}
		seen[i] = true
		if m.of[i] < 0 || m.match(m.of[i], seen) {
			m.of[i] = w
			return true
		}
	}
	return false
}

func (w Letter) fits(l letter) bool {
	return (w.Topic == "" || w.Topic == l.topic) && (w.Record == 0 || w.Record == l.record) &&
		(w.Reason == "" || w.Reason == string(l.fault.Code)) && strings.Contains(l.fault.Message, w.Message)
}

// String is a dead letter as a file of tests has it.
func (w Letter) String() string {
	var parts []string
	add := func(given bool, format string, value any) {
		if given {
			parts = append(parts, fmt.Sprintf(format, value))
		}
	}
	add(w.Topic != "", "topic: %s", w.Topic)
	add(w.Record != 0, "record: %d", w.Record)
	add(w.Reason != "", "reason: %s", w.Reason)
	add(w.Message != "", "message: %q", w.Message)
	return "dead letter {" + strings.Join(parts, ", ") + "}"
}
