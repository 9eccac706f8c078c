package shard

import (
	"slices"
	"strings"
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
