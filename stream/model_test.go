package stream

import (
	"maps"
	"slices"

	"giantstream/sink/rows"
)

// model computes what the rows of a graph must be from the set of mutations,
// straight from the definitions in doc.go and with no regard to order. It is
// the reference that the incremental state is compared with.
func model(all []Mutation, undirected bool) map[string]rows.Row {
	type link struct{ src, dst string }
	said := map[link]*[families][]assertion{}
	replaced := map[string]*[families]mark{}
	sources := map[string]bool{}
	node := map[string]Mutation{}
	known := map[string]bool{}

	say := func(src, dst string, live bool, at Version) {
		if dst == src || dst == "" {
			return
		}
		l := link{src, dst}
		if said[l] == nil {
			said[l] = &[families][]assertion{}
		}
		said[l][at.Rank] = append(said[l][at.Rank], assertion{true, live, at})
	}
	replace := func(m Mutation) {
		if replaced[m.ID] == nil {
			replaced[m.ID] = &[families]mark{}
		}
		if mk := &replaced[m.ID][m.Version.Rank]; !mk.set || m.Version.Compare(mk.at) > 0 {
			*mk = mark{true, m.Version}
		}
		for _, dst := range m.Others {
			say(m.ID, dst, true, m.Version)
		}
	}
	for _, m := range all {
		sources[m.ID] = true
		switch m.Op {
		case PutNode, DeleteNode:
			if m.Op == PutNode {
				known[m.ID] = true
			}
			if old, ok := node[m.ID]; !ok || m.Version.Compare(old.Version) > 0 {
				node[m.ID] = m
			}
			if m.HasEdges {
				replace(m)
			}
		case PutEdge, DeleteEdge:
			say(m.ID, m.Other, m.Op == PutEdge, m.Version)
		case SetEdges, ClearEdges:
			replace(m)
		}
	}

	effective := map[link]assertion{}
	for l, families := range said {
		var best assertion
		for f, list := range families {
			var newest assertion
			for _, a := range list {
				if a.newer(newest) {
					newest = a
				}
			}
			if r := replaced[l.src]; newest.set && r != nil && r[f].set && newest.at.Compare(r[f].at) < 0 {
				newest = assertion{true, false, r[f].at}
			}
			if newest.newer(best) {
				best = newest
			}
		}
		effective[l] = best
	}

	labels := map[string]map[string]bool{}
	newest := map[string]int64{}
	touch := func(owner, other string, a assertion) {
		if labels[owner] == nil {
			labels[owner] = map[string]bool{}
			newest[owner] = a.at.EventTime
		}
		newest[owner] = max(newest[owner], a.at.EventTime)
		if a.live {
			labels[owner][other] = true
		}
	}
	for l, a := range effective {
		touch(l.src, l.dst, a)
		if undirected {
			touch(l.dst, l.src, a)
		}
	}

	out := map[string]rows.Row{}
	for id, m := range node {
		if !known[id] {
			continue
		}
		row := rows.Row{NodeID: id, EventTime: m.Version.EventTime, Deleted: m.Op == DeleteNode}
		if !row.Deleted {
			row.Text, row.Class = m.Text, m.Class
			if t, ok := newest[id]; ok {
				row.EventTime = max(row.EventTime, t)
			}
			row.Labels = slices.Sorted(maps.Keys(labels[id]))
		}
		out[id] = row
	}
	return out
}
