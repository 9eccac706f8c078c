package shard

import (
	"bytes"
	"slices"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"giantstream/stream/shard/engine"
)

// pendingLink is a link of a pendingNode.
type pendingLink struct {
	other string // the far end
	adjacency
	set bool // newer than the files; else it was only read
}

// pendingLinks are links of one owner by far end. Most owners have few, so they lie in one slice: a
// sorted part, and behind it those that came since, in the order in which they came.
type pendingLinks struct {
	all    []pendingLink
	sorted int
	// index has the places of those that are not sorted, once there are more than linearLinks.
	index map[string]int
}

// linearLinks is how many links are searched one by one.
const linearLinks = 16

// find returns the link to a far end, or nil.
func (l *pendingLinks) find(other string) *pendingLink {
	if l.index != nil {
		if i, ok := l.index[other]; ok {
			return &l.all[i]
		}
	} else {
		for i := l.sorted; i < len(l.all); i++ {
			if l.all[i].other == other {
				return &l.all[i]
			}
		}
	}
	i, ok := slices.BinarySearchFunc(l.all[:l.sorted], other,
		func(known pendingLink, other string) int { return strings.Compare(known.other, other) })
	if !ok {
		return nil
	}
	return &l.all[i]
}

// add adds the link to a far end that has none.
func (l *pendingLinks) add(other string, a *adjacency) *pendingLink {
	at := len(l.all)
	l.all = append(l.all, pendingLink{other: other, adjacency: *a})
	if l.index == nil && at-l.sorted >= linearLinks {
		l.index = make(map[string]int, 2*linearLinks)
		for i := l.sorted; i < at; i++ {
			l.index[l.all[i].other] = i
		}
	}
	if l.index != nil {
		l.index[other] = at
	}
	return &l.all[at]
}

// inOrder returns all links in ascending order. What is added later is not among them.
func (l *pendingLinks) inOrder() []pendingLink {
	if l.sorted < len(l.all) {
		slices.SortFunc(l.all, func(a, b pendingLink) int { return strings.Compare(a.other, b.other) })
		l.sorted, l.index = len(l.all), nil
	}
	return l.all
}

// link returns the link of an owner to a far end, until the owner has another one.
func (p *pending) link(owner *pendingNode, other string) (*pendingLink, error) {
	if known := owner.facts.links.find(other); known != nil {
		return known, nil
	}
	if f := owner.facts; len(f.links.all) == 0 {
		p.key = adjacencyPrefix(p.key, owner.id)
		f.linksBefore = p.links.add(p.key)
	}
	var a adjacency
	p.key = adjacencyKey(p.key, owner.id, other)
	if p.links.add(p.key) {
		err := lookUp(p.db, p.key, func(data []byte) (err error) {
			a, err = decodeAdjacency(data)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return p.addLink(owner, other, &a), nil
}

// hasLinks reports whether the files may have links of an owner, of which n is pending or nil.
func (p *pending) hasLinks(prefix []byte, n *pendingNode) bool {
	if n != nil && n.facts != nil && len(n.facts.links.all) > 0 {
		return n.facts.linksBefore
	}
	return p.links == nil || p.links.mayHave(prefix)
}

// readLink is link where the files' adjacency is known to be a.
func (p *pending) readLink(owner *pendingNode, other string, a *adjacency) *pendingLink {
	owner.facts.linksBefore = true
	if known := owner.facts.links.find(other); known != nil {
		return known
	}
	return p.addLink(owner, other, a)
}

func (p *pending) addLink(owner *pendingNode, other string, a *adjacency) *pendingLink {
	p.take(pendingLinkBytes + len(other))
	return owner.facts.links.add(other, a)
}

// eachLink calls f with every link of an owner, in ascending order of the far ends. f may change
// the link that it is given.
func (p *pending) eachLink(owner *pendingNode, f func(other string, a adjacency) error) (err error) {
	prefix := adjacencyPrefix(nil, owner.id)
	it, err := p.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: prefixEnd(prefix)})
	if err != nil {
		return engine.Failure(err)
	}
	defer func() {
		if cerr := it.Close(); err == nil {
			err = engine.Failure(cerr)
		}
	}()
	return eachLink(it, prefix, owner, f)
}

// eachLink merges the links that an iterator has under a prefix, at or after its position, with the
// pending links of n, which are newer. Without an iterator or n there are none.
func eachLink(it *pebble.Iterator, prefix []byte, n *pendingNode, f func(other string, a adjacency) error) error {
	var newer []pendingLink
	if n != nil && n.facts != nil {
		newer = n.facts.links.inOrder() // f may add links, which come after these
	}
	for ok := it != nil && it.SeekGE(prefix); ok && bytes.HasPrefix(it.Key(), prefix); ok = it.Next() {
		other := it.Key()[len(prefix):]
		for ; len(newer) > 0 && newer[0].other < string(other); newer = newer[1:] {
			if err := f(newer[0].other, newer[0].adjacency); err != nil {
				return err
			}
		}
		if len(newer) > 0 && newer[0].other == string(other) {
			continue // it is newer, and the next one
		}
		data, err := it.ValueAndErr()
		if err != nil {
			return engine.Failure(err)
		}
		a, err := decodeAdjacency(data)
		if err != nil {
			return engine.Failure(err)
		}
		if err := f(string(other), a); err != nil {
			return err
		}
	}
	if it != nil {
		if err := it.Error(); err != nil {
			return engine.Failure(err)
		}
	}
	for i := range newer {
		if err := f(newer[i].other, newer[i].adjacency); err != nil {
			return err
		}
	}
	return nil
}
