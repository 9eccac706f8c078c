package shard

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// pending is the part of a state that is not in its files: the facts and marks of the open window.
// They are written when the window is committed (state.commitWindow), or earlier if memory is short
// (state.spill). Node headers that were read meanwhile are kept here, too.
type pending struct {
	db *pebble.DB
	// headers and links rule out keys that are neither in the files nor here; nil before state.ready.
	headers, links *keyFilter

	nodes  map[string]*pendingNode
	memory *windowMemory
	bytes  atomic.Int64 // of the shared memory; atomic for release

	// sorted are the nodes in ascending order, as of the time when there were that many.
	sorted []pendingEntry

	// spilled: the files may hold marks of the open window, too.
	spilled bool

	key []byte // scratch
}

// pendingNode is the pending part of one node. All of it may differ from the files, except a header
// that was only read.
type pendingNode struct {
	header     nodeHeader
	headerRead bool
	headerSet  bool

	textSet     bool // the text below is newer than the files; a node that does not exist has none
	text, class string

	mark        byte // 0: none
	markWritten bool

	links map[string]*adjacency
}

type pendingEntry struct {
	id string
	*pendingNode
}

// windowMemory is the memory for open windows that the shards of a process share.
type windowMemory struct {
	limit int64
	used  atomic.Int64
}

const (
	// windowMemoryBytes bounds the open windows of all shards of a process. Beyond half of it
	// shards commit early; beyond all of it they write to their states before the commit.
	windowMemoryBytes = 48 << 20
	// A shard that has less than this leaves making room to the others.
	windowShareBytes = 1 << 20

	// Rough sizes of a node's and a link's map entry, pointers and structs.
	pendingNodeBytes = 256
	pendingLinkBytes = 192
)

// overHalf reports whether this shard should commit its window early, overLimit whether it must
// spill.
func (p *pending) overHalf() bool  { return p.above(p.memory.limit / 2) }
func (p *pending) overLimit() bool { return p.above(p.memory.limit) }

func (p *pending) above(limit int64) bool {
	return p.memory.used.Load() > limit && p.bytes.Load() >= min(windowShareBytes, limit)
}

func (p *pending) take(n int) {
	p.bytes.Add(int64(n))
	p.memory.used.Add(int64(n))
}

// forget drops everything.
func (p *pending) forget() {
	clear(p.nodes)
	p.sorted = nil
	p.release()
}

// release gives the shared memory back, also when a goroutine that was left behind has the rest.
func (p *pending) release() { p.memory.used.Add(-p.bytes.Swap(0)) }

func (p *pending) node(id string) *pendingNode {
	n := p.nodes[id]
	if n == nil {
		n = &pendingNode{}
		if p.nodes == nil {
			p.nodes = map[string]*pendingNode{}
		}
		p.nodes[id] = n
		p.take(pendingNodeBytes + len(id))
	}
	return n
}

func (p *pending) header(id string) (nodeHeader, error) {
	n := p.node(id)
	if n.headerRead {
		return n.header, nil
	}
	if p.key = headerKey(p.key, id); p.headers.mayHave(p.key) {
		err := lookUp(p.db, p.key, func(data []byte) (err error) {
			n.header, err = decodeHeader(data)
			return err
		})
		if err != nil {
			return nodeHeader{}, err
		}
	}
	n.headerRead = true
	return n.header, nil
}

func (p *pending) setHeader(id string, h *nodeHeader) {
	p.key = headerKey(p.key, id)
	p.headers.add(p.key)
	n := p.node(id)
	n.header, n.headerRead, n.headerSet = *h, true, true
}

// setText sets the node's text and class; deleteText removes them.
func (p *pending) setText(id, text, class string) {
	n := p.node(id)
	p.take(len(text) + len(class) - len(n.text) - len(n.class))
	n.text, n.class, n.textSet = text, class, true
}

func (p *pending) deleteText(id string) { p.setText(id, "", "") }

// sameText reports whether a node that exists has this text and class.
func (p *pending) sameText(id, text, class string) (same bool, err error) {
	if n := p.node(id); n.textSet {
		return n.text == text && n.class == class, nil
	}
	p.key = textKey(p.key, id)
	err = lookUp(p.db, p.key, func(data []byte) error {
		t, c, err := decodeText(data)
		same = t == text && c == class
		return err
	})
	return same, err
}

func (p *pending) adjacency(owner, other string) (a adjacency, err error) {
	if known := p.node(owner).links[other]; known != nil {
		return *known, nil
	}
	if p.key = adjacencyKey(p.key, owner, other); !p.links.mayHave(p.key) {
		return adjacency{}, nil
	}
	err = lookUp(p.db, p.key, func(data []byte) (err error) {
		a, err = decodeAdjacency(data)
		return err
	})
	return a, err
}

func (p *pending) setAdjacency(owner, other string, a *adjacency) {
	n := p.node(owner)
	if known := n.links[other]; known != nil {
		*known = *a
		return
	}
	if n.links == nil {
		n.links = map[string]*adjacency{}
	}
	copied := *a
	n.links[other] = &copied
	p.key = adjacencyKey(p.key, owner, other)
	p.links.add(p.key)
	p.take(pendingLinkBytes + len(other))
}

// eachLink calls f with every link of an owner, in ascending order of the far ends. f may change
// the link that it is given.
func (p *pending) eachLink(owner string, f func(other string, a adjacency) error) (err error) {
	prefix := adjacencyPrefix(nil, owner)
	it, err := p.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: prefixEnd(prefix)})
	if err != nil {
		return engineFailure(err)
	}
	defer func() {
		if cerr := it.Close(); err == nil {
			err = engineFailure(cerr)
		}
	}()
	return eachLink(it, prefix, p.nodes[owner], f)
}

// eachLink merges the links that an iterator has under a prefix, at or after its position, with the
// pending links of n, which are newer.
func eachLink(it *pebble.Iterator, prefix []byte, n *pendingNode, f func(other string, a adjacency) error) error {
	var newer []string
	if n != nil && len(n.links) > 0 {
		newer = slices.Sorted(maps.Keys(n.links))
	}
	for ok := it.SeekGE(prefix); ok && bytes.HasPrefix(it.Key(), prefix); ok = it.Next() {
		other := string(it.Key()[len(prefix):])
		for len(newer) > 0 && newer[0] < other {
			if err := f(newer[0], *n.links[newer[0]]); err != nil {
				return err
			}
			newer = newer[1:]
		}
		var a adjacency
		if len(newer) > 0 && newer[0] == other {
			a, newer = *n.links[other], newer[1:]
		} else {
			data, err := it.ValueAndErr()
			if err == nil {
				a, err = decodeAdjacency(data)
			}
			if err != nil {
				return engineFailure(err)
			}
		}
		if err := f(other, a); err != nil {
			return err
		}
	}
	if err := it.Error(); err != nil {
		return engineFailure(err)
	}
	for _, other := range newer {
		if err := f(other, *n.links[other]); err != nil {
			return err
		}
	}
	return nil
}

// mark makes a node due or suspect in the open window, and reports whether it has thereby become
// due.
func (p *pending) mark(window int64, id string, kind byte) (due bool, err error) {
	n := p.node(id)
	if n.mark == 0 && p.spilled {
		p.key = dirtyKey(p.key, window, id)
		err := lookUp(p.db, p.key, func(data []byte) error {
			if len(data) == 1 {
				n.mark, n.markWritten = data[0], true
			}
			return nil
		})
		if err != nil {
			return false, err
		}
	}
	if n.mark != 0 && (kind == markSuspect || n.mark == markDue) {
		return false, nil
	}
	n.mark, n.markWritten = kind, false
	return kind == markDue, nil
}

// inOrder returns all nodes in ascending order. It relies on nodes being only added.
func (p *pending) inOrder() []pendingEntry {
	if len(p.sorted) != len(p.nodes) {
		p.sorted = make([]pendingEntry, 0, len(p.nodes))
		for id, n := range p.nodes {
			p.sorted = append(p.sorted, pendingEntry{id, n})
		}
		slices.SortFunc(p.sorted, func(a, b pendingEntry) int { return strings.Compare(a.id, b.id) })
	}
	return p.sorted
}

// due returns the nodes that are due by marks not yet written, in ascending order.
func (p *pending) due() (ids []string) {
	for _, n := range p.inOrder() {
		if n.mark == markDue && !n.markWritten {
			ids = append(ids, n.id)
		}
	}
	return ids
}

// batchBytes estimates the size of a batch of all that is pending. Keys and values take no more
// than their maps and structs do here; the meta takes a little.
func (p *pending) batchBytes() int { return int(p.bytes.Load()) + 4<<10 }

// write puts what may differ from the files into a batch, in key order, which is fastest for the
// engine. window is that of the marks; 0 leaves the marks out.
func (p *pending) write(b *pebble.Batch, window int64) error {
	nodes := p.inOrder()
	var key, value []byte
	for _, n := range nodes {
		if len(n.links) == 0 {
			continue
		}
		for _, other := range slices.Sorted(maps.Keys(n.links)) {
			key, value = adjacencyKey(key, n.id, other), n.links[other].encode(value)
			if err := b.Set(key, value, nil); err != nil {
				return err
			}
		}
	}
	for _, n := range nodes {
		if window == 0 || n.mark == 0 || n.markWritten {
			continue
		}
		key, value = dirtyKey(key, window, n.id), append(value[:0], n.mark)
		if err := b.Set(key, value, nil); err != nil {
			return err
		}
	}
	for _, n := range nodes {
		if !n.headerSet {
			continue
		}
		key, value = headerKey(key, n.id), n.header.encode(value)
		if err := b.Set(key, value, nil); err != nil {
			return err
		}
	}
	for _, n := range nodes {
		if !n.textSet {
			continue
		}
		var err error
		if n.header.exists() {
			op := b.SetDeferred(textKeyBytes(n.id), textBytes(n.text, n.class)) // texts are most of a batch
			textKey(op.Key, n.id)
			encodeText(op.Value, n.text, n.class)
			err = op.Finish()
		} else {
			key = textKey(key, n.id)
			err = b.Delete(key, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
