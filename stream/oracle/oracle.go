// Package oracle computes what the rows of a graph must be from the set of mutations, straight from the
// definitions in docs/PROTOCOL.md ("Facts and versions") and with no regard to order, windows or shards. It is
// the reference that the incremental state is compared with: in tests, and by command verify.
package oracle

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"giantstream/sink/rows"
	"giantstream/stream/mutation"
)

// families of assertions: what node records say, what edge records say, and what further topics of edges say.
const families = 3

// family of the assertions of an input.
func family(rank uint8) uint8 { return min(rank, families-1) }

// assertion is what one family says of a link.
type assertion struct {
	set, live bool
	weight    mutation.Weight
	at        mutation.Version
}

// newer orders assertions. Of two that one record makes, and of two equally new ones of both ends, the live one with
// the larger weight counts.
func (a assertion) newer(b assertion) bool {
	c := a.at.Compare(b.at)
	return a.set && (!b.set || c > 0 || c == 0 && a.live && (!b.live || a.weight > b.weight))
}

type link struct {
	src, dst string
	kind     mutation.Kind
}

// Graph is a set of mutations. It holds the newest of each fact in memory, and all that is said of orders.
type Graph struct {
	undirected bool
	said       map[link]*[families]assertion
	// replaced are the marks of sources whose list of edges was replaced.
	replaced map[string]*[families]assertion
	node     map[string]mutation.Mutation
	known    map[string]bool
	// attributes are, by node and input, the newest statement of them.
	attributes map[string]map[uint8]mutation.Mutation
	orders     map[orderID][]mutation.Mutation
	newest     int64 // time of an order, as of its day
	vectors    map[vectorsID]mutation.Mutation
}

type orderID struct {
	input uint8
	id    string
}

// New returns the empty graph.
func New(undirected bool) *Graph {
	return &Graph{undirected: undirected, said: map[link]*[families]assertion{},
		replaced: map[string]*[families]assertion{}, node: map[string]mutation.Mutation{}, known: map[string]bool{},
		attributes: map[string]map[uint8]mutation.Mutation{}, orders: map[orderID][]mutation.Mutation{},
		vectors: map[vectorsID]mutation.Mutation{}}
}

// Add adds a mutation. The order of additions makes no difference, nor do repetitions. Mirrored assertions
// repeat what edges say, and must not be added.
func (g *Graph) Add(m mutation.Mutation) {
	if m.Attributes != "" {
		g.describe(m)
	}
	if m.HasVectors {
		g.sayVectors(&m)
	}
	switch m.Op {
	case mutation.PutNode, mutation.DeleteNode:
		if m.Op == mutation.PutNode {
			g.known[m.ID] = true
		}
		if old, ok := g.node[m.ID]; !ok || m.Version.Compare(old.Version) > 0 {
			g.node[m.ID] = mutation.Mutation{Op: m.Op, ID: m.ID, Text: m.Text, Class: m.Class, Version: m.Version}
		}
		if m.HasEdges {
			g.replace(m)
		}
	case mutation.PutEdge, mutation.DeleteEdge:
		a := assertion{set: true, live: m.Op == mutation.PutEdge, at: m.Version}
		if a.live {
			a.weight = m.Weight
		}
		g.say(link{m.ID, m.Other, m.Kind}, a)
	case mutation.SetEdges, mutation.ClearEdges:
		g.replace(m)
	case mutation.SetOrder, mutation.AddLines, mutation.RemoveLines:
		if k := (orderID{m.Version.Rank, m.ID}); m.Op != mutation.RemoveLines || len(m.Order.Lines) > 0 {
			g.orders[k] = append(g.orders[k], m)
			g.tick(m)
		}
	}
}

func (g *Graph) describe(m mutation.Mutation) {
	of := g.attributes[m.ID]
	if of == nil {
		of = map[uint8]mutation.Mutation{}
		g.attributes[m.ID] = of
	}
	if old, ok := of[m.Version.Rank]; !ok || m.Version.Compare(old.Version) > 0 {
		of[m.Version.Rank] = mutation.Mutation{Attributes: m.Attributes, Version: m.Version}
	}
}

// attributesOf returns the attributes of a node as JSON, "" for none, and the event time of the newest statement of
// them. Of a name that several inputs have, the last one counts.
func (g *Graph) attributesOf(id string) (object string, newest int64, stated bool) {
	all := map[string]any{}
	of := g.attributes[id]
	for _, input := range slices.Sorted(maps.Keys(of)) {
		m := of[input]
		if !stated || m.Version.EventTime > newest {
			newest, stated = m.Version.EventTime, true
		}
		d := json.NewDecoder(strings.NewReader(m.Attributes))
		d.UseNumber()
		_ = d.Decode(&all) // decoders make valid JSON; else the rows differ
	}
	if len(all) == 0 {
		return "", newest, stated
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(all) // what was decoded encodes
	return strings.TrimSuffix(b.String(), "\n"), newest, stated
}

func (g *Graph) say(l link, a assertion) {
	if l.dst == l.src || l.dst == "" {
		return
	}
	if g.said[l] == nil {
		g.said[l] = &[families]assertion{}
	}
	if f := family(a.at.Rank); a.newer(g.said[l][f]) {
		g.said[l][f] = a
	}
}

func (g *Graph) replace(m mutation.Mutation) {
	if g.replaced[m.ID] == nil {
		g.replaced[m.ID] = &[families]assertion{}
	}
	f := family(m.Version.Rank)
	if mark := (assertion{set: true, at: m.Version}); mark.newer(g.replaced[m.ID][f]) {
		g.replaced[m.ID][f] = mark
	}
	for dst, kind := range m.Ends() {
		g.say(link{m.ID, dst, kind}, assertion{true, true, m.Weight, m.Version})
	}
}

// effective is what the newer family says of a link, once replace marks are heeded.
func (g *Graph) effective(l link) (best assertion) {
	for f, a := range g.said[l] {
		if r := g.replaced[l.src]; a.set && r != nil && r[f].set && a.at.Compare(r[f].at) < 0 {
			a = r[f]
		}
		if a.newer(best) {
			best = a
		}
	}
	return best
}

// Rows returns the newest row of every node, without features: those of deleted nodes say deleted. A node that
// no record has put has none.
func (g *Graph) Rows() map[string]rows.Row {
	labels, newest := map[string]map[string]map[mutation.Kind]assertion{}, map[string]int64{}
	touch := func(owner, other string, kind mutation.Kind, a assertion) {
		if at, ok := newest[owner]; !ok || a.at.EventTime > at {
			newest[owner] = a.at.EventTime
		}
		if a.live {
			if labels[owner] == nil {
				labels[owner] = map[string]map[mutation.Kind]assertion{}
			}
			if labels[owner][other] == nil {
				labels[owner][other] = map[mutation.Kind]assertion{}
			}
			if a.newer(labels[owner][other][kind]) { // either end may state the link
				labels[owner][other][kind] = a
			}
		}
	}
	for l := range g.said {
		a := g.effective(l)
		touch(l.src, l.dst, l.kind, a)
		if g.undirected && !l.kind.Directed {
			touch(l.dst, l.src, l.kind, a)
		}
	}
	out := map[string]rows.Row{}
	for id, m := range g.node {
		if !g.known[id] {
			continue
		}
		row := rows.Row{NodeID: id, EventTime: m.Version.EventTime, Deleted: m.Op == mutation.DeleteNode}
		if !row.Deleted {
			row.Text, row.Class = m.Text, m.Class
			if t, ok := newest[id]; ok {
				row.EventTime = max(row.EventTime, t)
			}
			for _, end := range slices.Sorted(maps.Keys(labels[id])) {
				row.AddLabel(end, linksOf(labels[id][end])...)
			}
			object, stated, ok := g.attributesOf(id)
			if row.Attributes = object; ok {
				row.EventTime = max(row.EventTime, stated)
			}
		}
		out[id] = row
	}
	return out
}

// linksOf returns the links between two nodes, by kind.
func linksOf(said map[mutation.Kind]assertion) (links []rows.Link) {
	for _, kind := range slices.SortedFunc(maps.Keys(said), mutation.Kind.Compare) {
		a := said[kind]
		links = append(links, rows.Link{Kind: kind.Name, Weight: a.weight.Float(), Time: a.at.EventTime,
			Plain: kind.Name == "" && !a.weight.Stated()})
	}
	return links
}
