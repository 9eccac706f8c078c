package sim

import (
	"maps"
	"time"

	"giantstream/stream/mutation"
	"giantstream/stream/oracle"
)

// tally says what became of the records of one topic of a shard, straight from docs/PROTOCOL.md, "Conservation". It
// sees the records of the topic alone, in their order.
type tally struct {
	nodes, attributes, vectors map[string]mutation.Mutation
	lists                      map[string]mutation.Version // when a source's list of edges was last replaced
	links                      map[link]statement
	clock                      *oracle.Graph // that has the newest order
	sure                       mutation.Outcomes
	// either counts records whose outcome depends on how the topics of nodes and edges interleave.
	either int64
}

// talliesOf returns what became of the records of a shard below offsets, by topic.
func (t *topics) talliesOf(shard int, next map[string]int64, keep time.Duration) map[string]*tally {
	t.mu.Lock()
	defer t.mu.Unlock()
	inlined := map[string]int64{} // the latest event time of a source's lists in node records
	out := map[string]*tally{}
	orders := map[string][]mutation.Mutation{} // what was said of each
	for _, topic := range allTopics {
		log := t.logs[shard][topic]
		all := &tally{nodes: map[string]mutation.Mutation{}, attributes: map[string]mutation.Mutation{},
			vectors: map[string]mutation.Mutation{},
			lists:   map[string]mutation.Version{}, links: map[link]statement{}, clock: oracle.New(false)}
		for _, r := range log[:min(int64(len(log)), next[topic])] {
			latest, lists := inlined[r[0].ID]
			switch {
			case topic == nodesTopic:
				all.node(&r[0])
				if r[0].HasEdges {
					inlined[r[0].ID] = max(latest, r[0].Version.EventTime)
				}
			case topic == edgesTopic || topic == viewsTopic:
				all.edges(r, lists && latest >= r[0].Version.EventTime)
			case topic == pricesTopic:
				all.add(all.stated(&r[0]))
			case topic == ordersTopic:
				all.order(orders[r[0].ID], r, keep)
				orders[r[0].ID] = append(orders[r[0].ID], r...)
			default:
				all.mirrored(&r[0])
			}
		}
		out[topic] = all
	}
	return out
}

// add counts a record: won, a fact is now what the record says, and was not before; lost, a fact is newer than the
// record.
func (t *tally) add(won, lost bool) {
	switch {
	case won:
		t.sure.Applied++
	case lost:
		t.sure.Superseded++
	default:
		t.sure.Repeated++
	}
}

// node counts a record of a node. Whether the links that it lists are news, records of edges decide.
func (t *tally) node(m *mutation.Mutation) {
	before, stated := t.nodes[m.ID]
	newest := !stated || m.Version.Compare(before.Version) > 0
	won := newest && (!stated || before.Op != m.Op || before.Version.EventTime != m.Version.EventTime ||
		before.Text != m.Text || before.Class != m.Class)
	if newest {
		t.nodes[m.ID] = *m
	}
	lost := !newest
	described, stale := t.stated(m) // a deletion of the node says nothing of its attributes
	won, lost = won || described, lost || stale
	if m.HasEdges && !won {
		t.either++
		return
	}
	t.add(won, lost)
}

// stated says whether attributes or vectors of a record are news, and whether any are older than what is known.
func (t *tally) stated(m *mutation.Mutation) (won, lost bool) {
	if m.Attributes != "" {
		won, lost = t.describe(m)
	}
	if m.HasVectors {
		news, stale := t.vector(m)
		won, lost = won || news, lost || stale
	}
	return won, lost
}

// describe says whether the attributes of a record are news, or older than what is known.
func (t *tally) describe(m *mutation.Mutation) (won, lost bool) {
	before, stated := t.attributes[m.ID]
	if stated && m.Version.Compare(before.Version) <= 0 {
		return false, true
	}
	t.attributes[m.ID] = *m
	return !stated || before.Version.EventTime != m.Version.EventTime || before.Attributes != m.Attributes, false
}

// edges counts a record of edges. contested: a node record lists links of the source, as of the same time or later.
func (t *tally) edges(r record, contested bool) {
	src, at := r[0].ID, r[0].Version
	named, replaces := linksIn(r)
	effective := t.effectiveOf(src) // before the record
	listed, linked, lost := false, false, false
	if replaces {
		before, known := t.lists[src]
		newest := !known || at.Compare(before) > 0
		if listed, lost = newest && (!known || before.EventTime != at.EventTime), !newest; newest {
			t.lists[src] = at
		}
	}
	for l, said := range named {
		if said.newer(t.links[l]) {
			t.links[l] = said
		}
	}
	for l := range t.links {
		_, is := named[l]
		if l.src != src || !is && !(replaces && t.lists[src] == at && t.links[l].at.Compare(at) < 0) {
			continue
		}
		before, known := effective[l]
		after := t.effective(l)
		linked = linked || after.at == at && !(known && after.repeats(before))
		lost = lost || at.Compare(after.at) < 0
	}
	if contested && !listed && (linked || !lost) {
		t.either++
		return
	}
	t.add(listed || linked, lost)
}

// linksIn returns what a record of edges says of the links that it names, and whether it replaces all of its source.
func linksIn(r record) (named map[link]statement, replaces bool) {
	src := r[0].ID
	named = map[link]statement{}
	for i := range r {
		m := &r[i]
		switch m.Op {
		case mutation.SetEdges, mutation.ClearEdges:
			replaces = true
			for dst, kind := range m.Ends() {
				named[link{src, dst, kind}] = linkStated(m, true)
			}
		default:
			l, said := link{src, m.Other, m.Kind}, linkStated(m, m.Op == mutation.PutEdge)
			if before, known := named[l]; !known || said.newer(before) {
				named[l] = said
			}
		}
	}
	maps.DeleteFunc(named, func(l link, _ statement) bool { return l.dst == src })
	return named, replaces
}

// effectiveOf is what is said of each link of a source.
func (t *tally) effectiveOf(src string) map[link]statement {
	all := map[link]statement{}
	for l := range t.links {
		if l.src == src {
			all[l] = t.effective(l)
		}
	}
	return all
}

// effective is what is said of a link, once the replacement of its source's list is heeded.
func (t *tally) effective(l link) statement {
	s := t.links[l]
	if mark, ok := t.lists[l.src]; ok && s.at.Compare(mark) < 0 {
		return statement{at: mark}
	}
	return s
}

// mirrored counts an assertion of a far end.
func (t *tally) mirrored(m *mutation.Mutation) {
	l, said := link{m.Other, m.ID, m.Kind}, linkStated(m, m.Op == mutation.MirrorPut)
	before, known := t.links[l]
	if known && !said.newer(before) {
		t.add(false, said.at.Compare(before.at) < 0)
		return
	}
	t.links[l] = said
	t.add(!known || !said.repeats(before), false)
}

// allows reports whether records may have had the outcomes.
func (t *tally) allows(got mutation.Outcomes) bool {
	between := func(n, sure int64) bool { return n >= sure && n <= sure+t.either }
	return got.Sum() == t.sure.Sum()+t.either && got.Expired == t.sure.Expired &&
		between(got.Applied, t.sure.Applied) && between(got.Superseded, t.sure.Superseded) &&
		between(got.Repeated, t.sure.Repeated)
}
