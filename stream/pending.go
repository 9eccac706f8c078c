package stream

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// pending is what a state knows beyond its files: the facts and marks of the
// open window, which are written once it is committed (state.settle), or in parts
// if memory is short (state.spill), and heads that were read on the way. See
// doc.go, "State".
type pending struct {
	db     *pebble.DB
	heads  *headFilter // of the heads in the files and here; nil before the first look
	nodes  map[string]*pendingNode
	memory *windowMemory
	bytes  int64 // taken from memory

	// sorted are the nodes in ascending order, if there are as many of them.
	sorted []pendingEntry

	// spilled: the files may hold marks of the open window, too.
	spilled bool

	key []byte // scratch
}

// pendingNode is what is known of one node. Everything but a head that was only
// read differs from the files, or may.
type pendingNode struct {
	head      head
	headKnown bool
	headSet   bool

	textSet     bool // to the text of a node that exists, or to none
	text, class string

	mark        byte // 0 if there is none here
	markWritten bool

	links map[string]*adjacency
}

type pendingEntry struct {
	id string
	*pendingNode
}

// windowMemory is shared by the shards of a process.
type windowMemory struct {
	limit int64
	used  atomic.Int64
}

const (
	// windowMemoryBytes is how much of the open windows the shards of a process keep
	// in memory together before they write to their states ahead of the commit. At half of
	// it they begin to commit.
	windowMemoryBytes = 48 << 20
	// A shard that has less than this leaves it to others to make room.
	windowShareBytes = 1 << 20

	// What maps, pointers and structs take, roughly.
	pendingNodeBytes = 256
	pendingLinkBytes = 192
)

// crowded says whether it is time for this shard to commit what it has, over
// whether it must write it now, come what may.
func (p *pending) crowded() bool { return p.above(p.memory.limit / 2) }
func (p *pending) over() bool    { return p.above(p.memory.limit) }

func (p *pending) above(limit int64) bool {
	return p.memory.used.Load() > limit && p.bytes >= min(windowShareBytes, limit)
}

func (p *pending) take(n int) {
	p.bytes += int64(n)
	p.memory.used.Add(int64(n))
}

// forget drops everything.
func (p *pending) forget() {
	clear(p.nodes)
	p.sorted = nil
	p.take(-int(p.bytes))
}

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

func (p *pending) head(id string) (head, error) {
	n := p.node(id)
	if !n.headKnown && p.heads.mayHave(id) {
		p.key = headKey(p.key, id)
		err := lookUp(p.db, p.key, func(data []byte) (err error) {
			n.head, err = decodeHead(data)
			return err
		})
		if err != nil {
			return head{}, err
		}
	}
	n.headKnown = true
	return n.head, nil
}

func (p *pending) setHead(id string, h *head) {
	p.heads.add(id)
	n := p.node(id)
	n.head, n.headKnown, n.headSet = *h, true, true
}

// setText gives the node a text; deleteText takes it.
func (p *pending) setText(id, text, class string) {
	n := p.node(id)
	p.take(len(text) + len(class) - len(n.text) - len(n.class))
	n.text, n.class, n.textSet = text, class, true
}

func (p *pending) deleteText(id string) { p.setText(id, "", "") }

// sameText says whether a node that exists has this text and class.
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
	p.key = adjacencyKey(p.key, owner, other)
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
	p.take(pendingLinkBytes + len(other))
}

// eachLink calls f with every link of an owner, in ascending order of the far
// ends, as it was when the walk came to it. f may restate the one it is given.
func (p *pending) eachLink(owner string, f func(other string, a adjacency) error) (err error) {
	prefix := adjacencyPrefix(nil, owner)
	it, err := p.db.NewIter(&pebble.IterOptions{LowerBound: prefix, UpperBound: prefixEnd(prefix)})
	if err != nil {
		return err
	}
	defer func() {
		if cerr := it.Close(); err == nil {
			err = cerr
		}
	}()
	return eachLink(it, prefix, p.nodes[owner], f)
}

// eachLink walks the links under a prefix that an iterator finds, from where it
// stands, and those pending, which are newer.
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
			if err != nil {
				return err
			}
			if a, err = decodeAdjacency(data); err != nil {
				return err
			}
		}
		if err := f(other, a); err != nil {
			return err
		}
	}
	if err := it.Error(); err != nil {
		return err
	}
	for _, other := range newer {
		if err := f(other, *n.links[other]); err != nil {
			return err
		}
	}
	return nil
}

// mark notes that a node's row is due or suspect in the open window, and says
// whether it has become due by that.
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

// inOrder returns all nodes in ascending order. Nodes are only ever added.
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

// due returns the nodes that are due by marks which are not written, in ascending order.
func (p *pending) due() (ids []string) {
	for _, n := range p.inOrder() {
		if n.mark == markDue && !n.markWritten {
			ids = append(ids, n.id)
		}
	}
	return ids
}

// batchBytes is the size of a batch that takes what is pending: with less of its
// own than here go into maps and structs, and a little for the meta.
func (p *pending) batchBytes() int { return int(p.bytes) + 4<<10 }

// write puts what differs from the files into a batch, in the order of the keys,
// which the engine takes in fastest. The marks are those of a window, 0 for none.
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
		if !n.headSet {
			continue
		}
		key, value = headKey(key, n.id), n.head.encode(value)
		if err := b.Set(key, value, nil); err != nil {
			return err
		}
	}
	for _, n := range nodes {
		if !n.textSet {
			continue
		}
		var err error
		if key = textKey(key, n.id); n.head.exists() {
			value = encodeText(value, n.text, n.class)
			err = b.Set(key, value, nil)
		} else {
			err = b.Delete(key, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
