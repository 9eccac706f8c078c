package sim

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"giantstream/sink/rows"
	"giantstream/stream/mutation"
)

// The oracle says what a graph is, straight from docs/PROTOCOL.md, "Facts and versions". It sees a set of mutations at
// once and knows nothing of states, windows and marks.

// link is an edge as its source asserts it.
type link struct {
	src, dst string
	kind     mutation.Kind
}

// statement says that a link is there (live) or not.
type statement struct {
	at     mutation.Version
	live   bool
	weight mutation.Weight
}

// linkStated is what a mutation says of its links.
func linkStated(m *mutation.Mutation, live bool) statement {
	s := statement{at: m.Version, live: live}
	if live {
		s.weight = m.Weight
	}
	return s
}

// newer orders statements. Of two in one record the live one counts, and of two live ones the larger weight.
func (s statement) newer(old statement) bool {
	c := s.at.Compare(old.at)
	return c > 0 || c == 0 && s.live && (!old.live || s.weight > old.weight)
}

// repeats reports whether a statement says what the one before says, as of the same event time.
func (s statement) repeats(before statement) bool {
	return s.live == before.live && s.weight == before.weight && s.at.EventTime == before.at.EventTime
}

// graph is what a set of mutations states.
type graph struct {
	nodes map[string]mutation.Mutation // the newest PutNode or DeleteNode
	known map[string]bool              // some PutNode came
	links map[link]statement           // effective assertions
	// mirrored are the far ends' assertions, by the link as its source asserted it.
	mirrored map[link]statement
	// priced and described are the newest statements of attributes, on the topic of prices and in node records.
	priced, described map[string]mutation.Mutation
}

// familyLink is an edge as one family of assertions has it: rank 0 is node records with inlined edges, 1 edge records.
type familyLink struct {
	link
	rank uint8
}

// family is what a source says in one family.
type family struct {
	src  string
	rank uint8
}

// keepNewer keeps the newest of the mutations of a node.
func keepNewer(newest map[string]mutation.Mutation, m *mutation.Mutation) {
	if old, ok := newest[m.ID]; !ok || m.Version.Compare(old.Version) > 0 {
		newest[m.ID] = *m
	}
}

func graphOf(all []mutation.Mutation) *graph {
	g := &graph{map[string]mutation.Mutation{}, map[string]bool{}, map[link]statement{}, map[link]statement{},
		map[string]mutation.Mutation{}, map[string]mutation.Mutation{}}
	said := map[familyLink]statement{}
	replaced := map[family]mutation.Version{}
	say := func(m *mutation.Mutation, dst string, kind mutation.Kind, live bool) {
		if dst == "" || dst == m.ID {
			return
		}
		l, s := familyLink{link{m.ID, dst, kind}, m.Version.Rank}, linkStated(m, live)
		if old, ok := said[l]; !ok || s.newer(old) {
			said[l] = s
		}
	}
	replace := func(m *mutation.Mutation) {
		f := family{m.ID, m.Version.Rank}
		if old, ok := replaced[f]; !ok || m.Version.Compare(old) > 0 {
			replaced[f] = m.Version
		}
		for dst, kind := range m.Ends() {
			say(m, dst, kind, true)
		}
	}
	for i := range all {
		switch m := &all[i]; m.Op {
		case mutation.PutNode, mutation.DeleteNode:
			keepNewer(g.nodes, m)
			if m.Op == mutation.PutNode {
				g.known[m.ID] = true
			}
			if m.Attributes != "" {
				keepNewer(g.described, m)
			}
			if m.HasEdges {
				replace(m)
			}
		case mutation.SetAttributes:
			if m.Attributes != "" {
				keepNewer(g.priced, m)
			}
		case mutation.PutEdge, mutation.DeleteEdge:
			say(m, m.Other, m.Kind, m.Op == mutation.PutEdge)
		case mutation.SetEdges, mutation.ClearEdges:
			replace(m)
		case mutation.MirrorPut, mutation.MirrorDelete:
			l, s := link{m.Other, m.ID, m.Kind}, linkStated(m, m.Op == mutation.MirrorPut)
			if old, ok := g.mirrored[l]; !ok || s.newer(old) {
				g.mirrored[l] = s
			}
		}
	}
	for l, s := range said {
		if mark, ok := replaced[family{l.src, l.rank}]; ok && s.at.Compare(mark) < 0 {
			s = statement{at: mark}
		}
		if old, ok := g.links[l.link]; !ok || s.newer(old) {
			g.links[l.link] = s
		}
	}
	return g
}

// rows returns the rows of the graph. The labels of a node come from its own assertions and from the mirrored ones
// given.
func (g *graph) rows(mirrored map[link]statement) map[string]rows.Row {
	type linked struct {
		other string
		kind  mutation.Kind
	}
	labels, newest := map[string]map[linked]statement{}, map[string]int64{}
	touch := func(owner, other string, kind mutation.Kind, s statement) {
		newest[owner] = max(newest[owner], s.at.EventTime)
		if labels[owner] == nil {
			labels[owner] = map[linked]statement{}
		}
		l := linked{other, kind}
		if before, known := labels[owner][l]; s.live && (!known || s.newer(before)) {
			labels[owner][l] = s
		}
	}
	for l, s := range g.links {
		touch(l.src, l.dst, l.kind, s)
	}
	for l, s := range mirrored {
		if !l.kind.Directed {
			touch(l.dst, l.src, l.kind, s)
		}
	}
	out := map[string]rows.Row{}
	for id := range g.known {
		m := g.nodes[id]
		row := rows.Row{NodeID: id, EventTime: m.Version.EventTime, Deleted: m.Op == mutation.DeleteNode}
		if !row.Deleted {
			row.Text, row.Class = m.Text, m.Class
			row.EventTime = max(row.EventTime, newest[id])
			all := slices.SortedFunc(maps.Keys(labels[id]), func(a, b linked) int {
				return cmp.Or(strings.Compare(a.other, b.other), a.kind.Compare(b.kind))
			})
			for len(all) > 0 {
				end, links := all[0].other, []rows.Link{}
				for ; len(all) > 0 && all[0].other == end; all = all[1:] {
					s, kind := labels[id][all[0]], all[0].kind.Name
					links = append(links, rows.Link{Kind: kind, Weight: s.weight.Float(), Time: s.at.EventTime,
						Plain: kind == "" && !s.weight.Stated()})
				}
				row.AddLabel(end, links...)
			}
			// Names in node records come before those of prices.
			described, priced := g.described[id], g.priced[id]
			row.EventTime = max(row.EventTime, described.Version.EventTime, priced.Version.EventTime)
			members := strings.Trim(described.Attributes, "{}")
			if more := strings.Trim(priced.Attributes, "{}"); members == "" || more == "" {
				members += more
			} else {
				members += "," + more
			}
			if members != "" {
				row.Attributes = "{" + members + "}"
			}
		}
		out[id] = row
	}
	return out
}

// difference describes the first node, in order of id, whose rows differ; "" if there is none.
func difference(got, want map[string]rows.Row) string {
	all := maps.Clone(want)
	maps.Copy(all, got)
	for _, id := range slices.Sorted(maps.Keys(all)) {
		g, have := got[id]
		w, wanted := want[id]
		switch {
		case !have:
			return fmt.Sprintf("node %s has no row, want %+v", id, facts(w))
		case !wanted:
			return fmt.Sprintf("node %s has a row and should have none: %+v", id, facts(g))
		case !reflect.DeepEqual(facts(g), facts(w)):
			return fmt.Sprintf("node %s has the row %+v, want %+v", id, facts(g), facts(w))
		}
	}
	return ""
}

// facts is a row without what generations add to it, and no list of labels like an empty one.
func facts(r rows.Row) rows.Row {
	return rows.Row{NodeID: r.NodeID, Text: r.Text, Class: r.Class, Labels: append([]string{}, r.Labels...),
		EventTime: r.EventTime, Deleted: r.Deleted, Attributes: r.Attributes,
		LinkEnds: r.LinkEnds, LinkWeights: r.LinkWeights, LinkTimes: r.LinkTimes, LinkKinds: r.LinkKinds}
}
